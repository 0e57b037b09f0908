import torch.distributed as dist
import torch_npu

dist.init_process_group("cpu:gloo,npu:hccl")  #: M312
