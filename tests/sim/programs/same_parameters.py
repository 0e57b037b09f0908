"""Runs another script as its main program, and then says whether its DDP models are equal on all ranks."""

from __future__ import annotations

import runpy
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

models: list[DistributedDataParallel] = []
whole = DistributedDataParallel.__init__


def remembered(self, *arguments, **named) -> None:
    """Keep each DDP model that the script makes."""
    whole(self, *arguments, **named)
    models.append(self)


DistributedDataParallel.__init__ = remembered
script, *sys.argv[1:] = sys.argv[1:]
sys.argv[0] = script
runpy.run_path(script, run_name="__main__")
assert models
for parameter in models[0].parameters():
    everyone = [torch.empty_like(parameter) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, parameter.detach())
    assert all(torch.equal(parameter, other) for other in everyone)
print("equal parameters on all ranks")
