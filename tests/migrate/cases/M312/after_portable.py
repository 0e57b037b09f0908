import torch.distributed as dist

dist.init_process_group("cpu:gloo,cuda:nccl,npu:hccl")  #: M312
