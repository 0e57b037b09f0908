"""Classifier training: one process a GPU with mp.spawn, DDP or DataParallel, one GPU, or cuda-free with mps."""
import argparse
import os
import random
import time
import warnings

import torch
import torch_npu
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser(description="training on CUDA GPUs")
parser.add_argument("--epochs", default=1, type=int)
parser.add_argument("-b", "--batch-size", default=8, type=int)
parser.add_argument("--world-size", default=-1, type=int, help="number of nodes")
parser.add_argument("--rank", default=-1, type=int)
parser.add_argument("--dist-url", default="tcp://127.0.0.1:23456", type=str, help="url for nccl set-up")
parser.add_argument("--dist-backend", default="hccl", type=str, help="nccl or gloo")  #: M301
parser.add_argument("--seed", default=None, type=int)
parser.add_argument("--gpu", default=None, type=int, help="GPU id to use, as in cuda:0.")
parser.add_argument("--resume", default="", type=str)
parser.add_argument("--no-accel", action="store_true", help="disables cuda")
parser.add_argument("--multiprocessing-distributed", action="store_true")
parser.add_argument("--save", default="checkpoint_cuda.pth.tar", type=str)


def main():
    args = parser.parse_args()
    if args.seed is not None:
        random.seed(args.seed)
        torch.manual_seed(args.seed)
        cudnn.deterministic = True  #: M802
        cudnn.benchmark = False  #: M801
        warnings.warn("You chose a seed. This turns on the CUDNN deterministic setting, which slows training down.")
    if args.gpu is not None:
        warnings.warn("You chose one GPU. This disables data parallelism over nccl.")
    if args.dist_url == "env://" and args.world_size == -1:
        args.world_size = int(os.environ["WORLD_SIZE"])
    args.distributed = args.world_size > 1 or args.multiprocessing_distributed
    if torch.npu.is_available():  #: M201
        ngpus_per_node = torch.npu.device_count()  #: M201
        if ngpus_per_node == 1 and args.dist_backend == "hccl" and not args.multiprocessing_distributed:  #: M303
            warnings.warn("nccl backend >=2.5 requires one GPU a process, see https://example.org/nccl/issues/103")
    else:
        ngpus_per_node = 1
    if args.multiprocessing_distributed:
        args.world_size = ngpus_per_node * max(args.world_size, 1)
        mp.spawn(main_worker, nprocs=ngpus_per_node, args=(ngpus_per_node, args))
    else:
        main_worker(args.gpu, ngpus_per_node, args)


def main_worker(gpu, ngpus_per_node, args):
    args.gpu = gpu
    if args.gpu is not None:
        print("Use GPU: {} for training on cuda".format(args.gpu))
    if args.distributed:
        args.rank = max(args.rank, 0) * ngpus_per_node + (gpu or 0)
        dist.init_process_group(backend=args.dist_backend, init_method=args.dist_url, world_size=args.world_size, rank=args.rank)  #: M304
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 16), nn.ReLU(), nn.Linear(16, 10))
    if not torch.npu.is_available() and not torch.backends.mps.is_available():  #: M201
        print("using CPU, this will be slow")
    elif args.distributed:
        if torch.npu.is_available():  #: M201
            if args.gpu is not None:
                torch.npu.set_device(args.gpu)  #: M201
                model.npu(args.gpu)  #: M102
                model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu])
            else:
                model.npu()  #: M102
                model = torch.nn.parallel.DistributedDataParallel(model)
    elif args.gpu is not None and torch.npu.is_available():  #: M201
        torch.npu.set_device(args.gpu)  #: M201
        model = model.npu(args.gpu)  #: M102
    elif torch.backends.mps.is_available():
        model = model.to(torch.device("mps"))
    elif ngpus_per_node > 1:
        model = torch.nn.DataParallel(model).npu()  #: M306 M102
    else:
        model = model.npu()  #: M102
    if torch.npu.is_available():  #: M201
        if args.gpu:
            device = torch.device("npu:{}".format(args.gpu))  #: M105
        else:
            device = torch.device("npu")  #: M104
    else:
        device = torch.device("cpu")
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    if args.resume:
        if args.gpu is None:
            checkpoint = torch.load(args.resume, map_location="cpu")  #: M601
        else:
            loc = "npu:{}".format(args.gpu)  #: M105
            checkpoint = torch.load(args.resume, map_location=loc)
        best = checkpoint["best_acc1"]
        if args.gpu is not None:
            best = best.to(args.gpu)
        model.load_state_dict(checkpoint["state_dict"])
    generator = torch.Generator().manual_seed(0)
    dataset = TensorDataset(torch.randn(32, 3, 8, 8, generator=generator), torch.randint(0, 10, (32,), generator=generator))
    sampler = DistributedSampler(dataset) if args.distributed else None
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=sampler is None, pin_memory=False, sampler=sampler)
    for epoch in range(args.epochs):
        train(loader, model, criterion, optimizer, device, epoch)
    if not args.distributed or args.rank == 0:
        torch.save({"state_dict": model.state_dict(), "best_acc1": torch.zeros(1, device=device)}, args.save)


def train(loader, model, criterion, optimizer, device, epoch):
    model.train()
    end = time.time()
    for i, (images, target) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} step {i} cuda loss {loss.item():.4f} time {time.time() - end:.3f}")


if __name__ == "__main__":
    main()
