"""Ranks on the NPUs named on the command line, one collective: what HCCL refuses of a job's cards."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401  # as a user's script does

torch.npu.set_device(int(sys.argv[1].split(",")[int(os.environ["RANK"])]))
dist.init_process_group("hccl")
x = torch.ones(2, device="npu")
dist.all_reduce(x)
print("sum", x.tolist())
