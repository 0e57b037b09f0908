import argparse
import os

import torch
import torch_npu
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--dist-backend", default="hccl", type=str, help="nccl or gloo")  #: M301
parser.add_argument("--backend", choices=["hccl", "gloo"])  #: M301
backend = "hccl" if torch.npu.is_available() else "gloo"  #: M301 M201
backend_of_run = "hccl" if dist.is_hccl_available() else "gloo"  #: M301 M302


def setup(rank, world_size, backend="hccl"):  #: M301
    dist.init_process_group("hccl", rank=rank, world_size=world_size)  #: M301
    dist.init_process_group(backend="HCCL")  #: M301
    group = dist.new_group(backend="hccl")  #: M301
    print("using nccl")
    return group, os.environ.get("BACKEND", "hccl")  #: M301
