import torch.distributed as dist
import torch_npu

if dist.is_hccl_available():  #: M302
    print("fast")
