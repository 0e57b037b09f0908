import torch.distributed as dist

options = dist.ProcessGroupNCCL.Options()  #: M305
