import argparse
import os

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--dist-backend", default="nccl", type=str, help="nccl or gloo")  #: M301
parser.add_argument("--backend", choices=["nccl", "gloo"])  #: M301
backend = "nccl" if torch.cuda.is_available() else "gloo"  #: M301 M201
backend_of_run = "nccl" if dist.is_nccl_available() else "gloo"  #: M301 M302


def setup(rank, world_size, backend="nccl"):  #: M301
    dist.init_process_group("nccl", rank=rank, world_size=world_size)  #: M301
    dist.init_process_group(backend="NCCL")  #: M301
    group = dist.new_group(backend="nccl")  #: M301
    print("using nccl")
    return group, os.environ.get("BACKEND", "nccl")  #: M301
