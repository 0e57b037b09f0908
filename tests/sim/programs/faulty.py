"""A loop of DDP steps on simulated NPUs, for faults to strike."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401  # as a user's script does

torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("hccl")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2).npu(), device_ids=[int(os.environ["LOCAL_RANK"])])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    model(torch.ones(2, 4, device="npu")).sum().backward()
    torch.npu.synchronize()
    optimizer.step()
    print(f"step {step} done", flush=True)
dist.destroy_process_group()
