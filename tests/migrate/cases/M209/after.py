import torch
import torch_npu

dtype = torch.get_autocast_dtype("npu")  #: M209
torch.set_autocast_dtype("npu", torch.bfloat16)  #: M209
