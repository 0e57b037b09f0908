import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def wrap(model, args):
    dist.barrier(device_ids=[args.gpu])
    one = torch.nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu], output_device=args.gpu)
    return one, DDP(model, device_ids=[0])
