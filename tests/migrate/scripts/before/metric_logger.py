"""Reference style of vision libraries: a metric logger that sums float64 over ranks, AMP by flag, torchrun."""
import argparse
import os
import time
from collections import deque

import torch
import torch.distributed as dist
from torch import nn


class SmoothedValue:
    """Track a series of values; synchronize_between_processes sums over ranks on cuda."""

    def __init__(self, window_size=20):
        self.deque = deque(maxlen=window_size)
        self.total = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.deque.append(value)
        self.count += n
        self.total += value * n

    def synchronize_between_processes(self):
        if not (dist.is_available() and dist.is_initialized()):
            return
        t = torch.tensor([self.count, self.total], dtype=torch.float64, device="cuda")  #: M311 M104
        dist.barrier()
        dist.all_reduce(t)
        t = t.tolist()
        self.count = int(t[0])
        self.total = t[1]


def log_every(iterable, header):
    space = "max mem: {memory:.0f}"
    MB = 1024.0 * 1024.0
    start = time.time()
    for i, obj in enumerate(iterable):
        yield obj
        if torch.cuda.is_available():  #: M201
            print(header, i, space.format(memory=torch.cuda.max_memory_allocated() / MB), f"{time.time() - start:.2f}s")  #: M201


def init_distributed_mode(args):
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        args.rank = int(os.environ["RANK"])
        args.world_size = int(os.environ["WORLD_SIZE"])
        args.gpu = int(os.environ["LOCAL_RANK"])
    elif "SLURM_PROCID" in os.environ and "SLURM_NTASKS" in os.environ:
        args.rank = int(os.environ["SLURM_PROCID"])
        args.gpu = args.rank % torch.cuda.device_count()  #: M201
    else:
        print("Not using distributed mode")
        args.distributed = False
        return
    args.distributed = True
    torch.cuda.set_device(args.gpu)  #: M201
    args.dist_backend = "nccl"  #: M301
    print(f"| distributed init (rank {args.rank}): nccl", flush=True)
    torch.distributed.init_process_group(backend=args.dist_backend, world_size=args.world_size, rank=args.rank)
    torch.distributed.barrier()


def main(args):
    init_distributed_mode(args)
    device = torch.device(args.device)
    if args.use_deterministic_algorithms:
        torch.backends.cudnn.benchmark = False  #: M801
        torch.use_deterministic_algorithms(True)
    else:
        torch.backends.cudnn.benchmark = True  #: M801
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 4)).to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler() if args.amp else None  #: M402
    if args.distributed:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu])
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu", weights_only=True)
        model.load_state_dict(checkpoint["model"])
    meter = SmoothedValue()
    batches = [(torch.randn(4, 3, 2, 2), torch.randint(0, 4, (4,))) for _ in range(3)]
    for image, target in log_every(batches, "Train:"):
        image, target = image.to(device), target.to(device)
        with torch.cuda.amp.autocast(enabled=scaler is not None):  #: M401
            output = model(image)
            loss = criterion(output, target)
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()
        meter.update(loss.item())
    meter.synchronize_between_processes()
    print("loss", meter.total / meter.count)


def get_args_parser():
    parser = argparse.ArgumentParser(description="PyTorch Classification Training")
    parser.add_argument("--device", default="cuda", type=str, help="device (Use cuda or cpu Default: cuda)")  #: M104
    parser.add_argument("--amp", action="store_true", help="Use torch.cuda.amp for mixed precision training")
    parser.add_argument("--resume", default="", type=str)
    parser.add_argument("--use-deterministic-algorithms", action="store_true")
    return parser


if __name__ == "__main__":
    main(get_args_parser().parse_args())
