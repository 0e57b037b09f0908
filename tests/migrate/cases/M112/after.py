import torch
import torch_npu

if torch.npu.is_available():  #: M201
    torch.set_default_device("npu")  #: M112
else:
    torch.set_default_tensor_type("torch.FloatTensor")


def half():
    torch.set_default_device("npu")
    torch.set_default_dtype(torch.float16)  #: M112
