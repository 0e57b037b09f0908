"""A script for CUDA, moved by one import."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch_npu.contrib import transfer_to_npu  # noqa: F401  # the import does the work

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
assert torch.cuda.is_available()
assert torch.cuda.device_count() == int(os.environ["WORLD_SIZE"])
torch.cuda.manual_seed_all(1)
model = nn.parallel.DistributedDataParallel(nn.Linear(3, 2).cuda(), device_ids=[rank])
scaler = torch.cuda.amp.GradScaler()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
with torch.cuda.amp.autocast():
    loss = model(torch.randn(4, 3, device=f"cuda:{rank}")).float().square().mean()
with torch.autocast("cuda"):
    assert model(torch.randn(4, 3).to("cuda")).dtype is torch.float16
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
end.record()
torch.cuda.synchronize()
assert start.elapsed_time(end) >= 0
assert loss.is_cuda
assert torch.Generator(device="cuda").device.type == "npu"
if rank == 0:
    torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, sys.argv[1])
    assert torch.load(sys.argv[1], map_location="cuda:1")["model"]["weight"].device == torch.device("npu:1")
print("moved", torch.cuda.get_device_name())
dist.destroy_process_group()
