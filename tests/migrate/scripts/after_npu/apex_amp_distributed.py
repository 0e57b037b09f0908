"""torch.distributed.launch with apex: amp.initialize in the worker, scale_loss in the loop."""
import argparse
import os

import torch
import torch_npu
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.nn as nn

grad_scaler = torch.amp.GradScaler("npu", enabled=False)

parser = argparse.ArgumentParser(description="apex over nccl")
parser.add_argument("--local_rank", "--local-rank", default=int(os.environ.get("LOCAL_RANK", 0)), type=int, help="node rank for distributed training")  #: M308
parser.add_argument("--opt-level", default="O1", type=str)
parser.add_argument("--clip", action="store_true")


def reduce_mean(tensor, nprocs):
    rt = tensor.clone()
    dist.all_reduce(rt, op=dist.ReduceOp.SUM)
    rt /= nprocs
    return rt


def main():
    args = parser.parse_args()
    args.nprocs = torch.npu.device_count()  #: M201
    main_worker(args.local_rank, args.nprocs, args)


def main_worker(local_rank, nprocs, args):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    world = int(os.environ.get("WORLD_SIZE", 1))
    dist.init_process_group(backend="hccl", rank=int(os.environ.get("RANK", 0)), world_size=world)  #: M301
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4))
    torch.npu.set_device(max(local_rank, 0))  #: M201
    model.npu()  #: M102
    criterion = nn.CrossEntropyLoss().npu(max(local_rank, 0))  #: M102
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    global grad_scaler
    grad_scaler = torch.amp.GradScaler("npu", enabled=args.opt_level != "O0")  #: M501
    model = torch.nn.parallel.DistributedDataParallel(model)  #: M503
    cudnn.benchmark = True  #: M801
    loader = [(torch.randn(4, 3, 2, 2), torch.randint(0, 4, (4,))) for _ in range(3)]
    train(loader, model, criterion, optimizer, world, args)
    if dist.get_rank() == 0:
        torch.save({"state_dict": model.module.state_dict(), "amp": grad_scaler.state_dict()}, "apex_cuda.pth")  #: M508
    dist.destroy_process_group()


def train(loader, model, criterion, optimizer, world, args):
    model.train()
    for i, (images, target) in enumerate(loader):
        images = images.npu(non_blocking=True)  #: M102
        target = target.npu(non_blocking=True)  #: M102
        # images, target = images.cuda(), target.cuda()
        with torch.autocast("npu", dtype=torch.float16, enabled=grad_scaler.is_enabled()):
            output = model(images)  #: M509
            loss = criterion(output, target)

        torch.distributed.barrier()
        reduced_loss = reduce_mean(loss.detach(), world)

        optimizer.zero_grad()
        grad_scaler.scale(loss).backward()
        if args.clip:
            grad_scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_((p for group in optimizer.param_groups for p in group["params"]), 1.0)  #: M508
        grad_scaler.step(optimizer)
        grad_scaler.update()  #: M502
        print(i, "loss", reduced_loss.item())


if __name__ == "__main__":
    main()
