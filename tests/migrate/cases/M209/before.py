import torch

dtype = torch.get_autocast_gpu_dtype()  #: M209
torch.set_autocast_gpu_dtype(torch.bfloat16)  #: M209
