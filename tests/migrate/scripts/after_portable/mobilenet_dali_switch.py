"""ImageNet in an older style: Variables, a switch for DALI, DDP without device_ids."""
import argparse
import os

import torch
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.nn as nn
import torch.nn.parallel
from torch.autograd import Variable

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
COLLECTIVE_BACKEND = torch.distributed.get_default_backend_for_device(ACCELERATOR)

parser = argparse.ArgumentParser()
parser.add_argument("--data-backend", metavar="BACKEND", default="pytorch", choices=["pytorch", "dali-gpu", "dali-cpu"])
parser.add_argument("--dist-url", default="env://", type=str, help="url used to set up distributed training, over nccl")
parser.add_argument("--dist-backend", default=COLLECTIVE_BACKEND, type=str)  #: M301
parser.add_argument("--world-size", default=1, type=int)
parser.add_argument("--resume", default="", type=str)
parser.add_argument("--rank-count", default=1, type=int)


def dali_loader(path):
    from nvidia.dali.plugin.pytorch import DALIClassificationIterator  #: M902

    return DALIClassificationIterator(path)  #: M902


def main():
    args = parser.parse_args()
    args.distributed = args.world_size > 1
    if args.distributed:
        dist.init_process_group(backend=args.dist_backend, init_method=args.dist_url, world_size=args.world_size)  #: M304
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 6 * 6, 10))
    if not args.distributed:
        if args.rank_count > 1:
            model = torch.nn.DataParallel(model).to(ACCELERATOR)  #: M306 M102
        else:
            model = model.to(ACCELERATOR)  #: M102
    else:
        model.to(ACCELERATOR)  #: M102
        model = torch.nn.parallel.DistributedDataParallel(model)
    criterion = nn.CrossEntropyLoss().to(ACCELERATOR)  #: M102
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    cudnn.benchmark = True  #: M801
    if args.resume and os.path.isfile(args.resume):
        checkpoint = torch.load(args.resume, map_location="cpu")  #: M601
        model.load_state_dict(checkpoint["state_dict"])
    if args.data_backend == "dali-gpu":
        loader = dali_loader("train")
    else:
        loader = [(torch.randn(4, 3, 8, 8), torch.randint(0, 10, (4,))) for _ in range(2)]
    train(loader, model, criterion, optimizer)


def train(loader, model, criterion, optimizer):
    model.train()
    for i, (input, target) in enumerate(loader):
        target = target.to(ACCELERATOR, non_blocking=True)  #: M102
        input_var = Variable(input.to(ACCELERATOR, non_blocking=True))  #: M102
        target_var = Variable(target)
        output = model(input_var)
        loss = criterion(output, target_var)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(i, loss.item())


if __name__ == "__main__":
    main()
