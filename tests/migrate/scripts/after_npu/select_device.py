"""A detector's trainer: select_device sets CUDA_VISIBLE_DEVICES, a local flag is called cuda, DDP by environment."""
import argparse
import logging
import os

import torch
import torch_npu
import torch.distributed as dist
import torch.nn as nn
from torch.npu import amp  #: M204
from torch.nn.parallel import DistributedDataParallel as DDP

LOGGER = logging.getLogger("detector")
LOCAL_RANK = int(os.getenv("LOCAL_RANK", -1))
RANK = int(os.getenv("RANK", -1))


def select_device(device="", batch_size=None):
    """device = 'cpu' or '0' or '0,1,2,3'"""
    s = f"detector torch {torch.__version__} "
    cpu = device == "cpu"
    if cpu:
        os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "-1"  # force torch.cuda.is_available() = False  #: M701
    elif device:
        os.environ["ASCEND_RT_VISIBLE_DEVICES"] = device  #: M701
        assert torch.npu.is_available(), f"CUDA unavailable, invalid device {device} requested"  #: M201
    cuda = not cpu and torch.npu.is_available()  #: M201
    if cuda:
        for i in range(torch.npu.device_count()):  #: M201
            p = torch.npu.get_device_properties(i)  #: M201
            s += f"CUDA:{i} ({p.name}, {p.total_memory / 1024 ** 2:.0f}MiB)\n"
    else:
        s += "CPU\n"
    LOGGER.info(s)
    return torch.device("npu:0" if cuda else "cpu")  #: M107


def time_sync():
    # pytorch-accurate time
    if torch.npu.is_available():  #: M201
        torch.npu.synchronize()  #: M201


def train(opt, device):
    cuda = device.type != "cpu"
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 6 * 6, 2)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.937, nesterov=True)
    if cuda and RANK == -1 and torch.npu.device_count() > 8:  #: M201
        model = torch.nn.DataParallel(model)  #: M306
    if opt.sync_bn and cuda and RANK != -1:
        model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model).to(device)
    if cuda and RANK != -1:
        model = DDP(model, device_ids=[LOCAL_RANK], output_device=LOCAL_RANK)
    scaler = amp.GradScaler(enabled=cuda)
    compute_loss = nn.CrossEntropyLoss()
    for i in range(2):
        imgs = torch.randint(0, 255, (4, 3, 8, 8)).to(device, non_blocking=True).float() / 255.0
        with amp.autocast(enabled=cuda):
            pred = model(imgs)
            loss = compute_loss(pred, torch.zeros(4, dtype=torch.int64).to(device))
            if RANK != -1:
                loss *= int(os.getenv("WORLD_SIZE", 1))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        mem = f"{torch.npu.memory_reserved() / 1E9 if torch.npu.is_available() else 0:.3g}G"  #: M201 M201
        print(i, mem, loss.item(), scaler.is_enabled())
    time_sync()
    torch.npu.empty_cache()  #: M201


def main(opt):
    device = select_device(opt.device, 8)
    if LOCAL_RANK != -1:
        assert torch.npu.device_count() > LOCAL_RANK, "insufficient CUDA devices for DDP command"  #: M201
        torch.npu.set_device(LOCAL_RANK)  #: M201
        device = torch.device("npu", LOCAL_RANK)  #: M104
        dist.init_process_group(backend="hccl" if dist.is_hccl_available() else "gloo")  #: M301 M302
    train(opt, device)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="", help="cuda device, i.e. 0 or 0,1,2,3 or cpu")
    parser.add_argument("--sync-bn", action="store_true", help="use SyncBatchNorm, only available in DDP mode")
    main(parser.parse_args())
