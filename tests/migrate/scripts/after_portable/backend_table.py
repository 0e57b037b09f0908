"""A library's train script: tables of backends, functools.partial over autocast, timing with events."""
import argparse
import os
from contextlib import suppress
from functools import partial

import torch
import torch.nn as nn

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

BACKENDS = {"cpu": "gloo", "npu": "hccl", "cuda": "nccl", "xpu": "ccl"}  #: M310
has_native_amp = getattr(torch.get_device_module(ACCELERATOR), "amp", None) is not None  #: M201

parser = argparse.ArgumentParser()
group = parser.add_argument_group("Device parameters")
group.add_argument("--device", default=ACCELERATOR, type=str, help="Device (accelerator) to use, such as cuda.")  #: M104
group.add_argument("--amp", action="store_true", default=False, help="use torch.cuda.amp")
group.add_argument("--amp-dtype", default="float16", type=str)
group.add_argument("--local-rank", "--local_rank", default=0, type=int)  #: M308
group.add_argument("--dist-backend", default=None, type=str)
group.add_argument("--torchcompile", default="", type=str)


class PrefetchLoader:
    def __init__(self, loader, device=torch.device(ACCELERATOR)):  #: M104
        self.loader = loader
        self.device = device
        self.is_cuda = device.type in ("cuda", "npu") and torch.accelerator.is_available()  #: M106 M201

    def __iter__(self):
        if self.is_cuda:
            stream = torch.Stream(device=self.device)  #: M201
            stream_context = partial(torch.get_device_module(ACCELERATOR).stream, stream=stream)  #: M201
        else:
            stream, stream_context = None, suppress
        for images, target in self.loader:
            with stream_context():
                images = images.to(device=self.device, non_blocking=True)
                target = target.to(device=self.device, non_blocking=True)
            if stream is not None:
                torch.accelerator.current_stream(self.device).wait_stream(stream)  #: M201
            yield images, target


def init_distributed_device(args):
    dist_device = args.device.split(":")[0]
    dist_backend = args.dist_backend or BACKENDS[dist_device]
    args.world_size = int(os.environ.get("WORLD_SIZE", 1))
    if args.world_size > 1:
        torch.distributed.init_process_group(backend=dist_backend, init_method="env://")
        args.local_rank = int(os.environ["LOCAL_RANK"])
        args.device = "%s:%d" % (dist_device, args.local_rank)
    device = torch.device(args.device)
    if args.device.startswith(("cuda", "npu")):  #: M106
        torch.accelerator.set_device_index(device.index or 0)  #: M201
    return device


def main():
    args = parser.parse_args()
    if torch.accelerator.is_available():  #: M201
        torch.backends.cuda.matmul.allow_tf32 = True  #: M804
        torch.backends.cudnn.benchmark = True  #: M801
    device = init_distributed_device(args)
    amp_autocast, loss_scaler = suppress, None
    if args.amp:
        amp_autocast = partial(torch.autocast, device_type=device.type, dtype=torch.float16)
        if device.type in ("cuda", "npu") and args.amp_dtype == "float16":  #: M106
            loss_scaler = torch.amp.GradScaler(ACCELERATOR)
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 4)).to(device)
    if args.torchcompile:
        model = torch.compile(model, backend=args.torchcompile)  #: M809
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    start, end = torch.Event(enable_timing=True), torch.Event(enable_timing=True)  #: M201 M201
    loader = PrefetchLoader([(torch.randn(4, 3, 2, 2), torch.randint(0, 4, (4,))) for _ in range(3)], device=device)
    if torch.accelerator.is_available():  #: M201
        start.record()
    for images, target in loader:
        with amp_autocast():
            loss = nn.functional.cross_entropy(model(images), target)
        optimizer.zero_grad()
        if loss_scaler is not None:
            loss_scaler.scale(loss).backward()
            loss_scaler.step(optimizer)
            loss_scaler.update()
        else:
            loss.backward()
            optimizer.step()
        if device.type in ("cuda", "npu"):  #: M106
            torch.accelerator.synchronize()  #: M201
        print("loss", loss.item(), device.type, loss_scaler is not None)
    try:
        torch.zeros(4, device=device)
    except torch.OutOfMemoryError:  #: M206
        print("CUDA out of memory")
    if torch.accelerator.is_available():  #: M201
        end.record()
        torch.accelerator.synchronize()  #: M201
        print("elapsed", start.elapsed_time(end), "peak", torch.accelerator.max_memory_allocated())  #: M201


if __name__ == "__main__":
    main()
