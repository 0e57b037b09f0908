import torch.distributed as dist

if dist.is_nccl_available():  #: M302
    print("fast")
