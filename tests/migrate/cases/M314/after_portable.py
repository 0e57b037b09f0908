import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def wrap(model, args):
    dist.barrier(device_ids=None if ACCELERATOR == "cpu" else [args.gpu])
    one = torch.nn.parallel.DistributedDataParallel(model, device_ids=None if ACCELERATOR == "cpu" else [args.gpu], output_device=None if ACCELERATOR == "cpu" else args.gpu)
    return one, DDP(model, device_ids=None if ACCELERATOR == "cpu" else [0])
