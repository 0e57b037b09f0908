import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

if torch.accelerator.is_available():  #: M201
    torch.set_default_device(ACCELERATOR)  #: M112
else:
    torch.set_default_tensor_type("torch.FloatTensor")


def half():
    torch.set_default_device(ACCELERATOR)
    torch.set_default_dtype(torch.float16)  #: M112
