import torch

if torch.cuda.is_available():  #: M201
    torch.set_default_tensor_type("torch.cuda.FloatTensor")  #: M112
else:
    torch.set_default_tensor_type("torch.FloatTensor")


def half():
    torch.set_default_tensor_type(torch.cuda.HalfTensor)  #: M112
