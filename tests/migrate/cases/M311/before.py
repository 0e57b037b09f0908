import torch
import torch.distributed as dist


def total(count, value):
    t = torch.tensor([count, value], dtype=torch.float64, device="cuda")  #: M311 M104
    dist.barrier()
    dist.all_reduce(t)
    return t.tolist()
