import argparse
import os

import torch
import torch.distributed as dist

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
COLLECTIVE_BACKEND = torch.distributed.get_default_backend_for_device(ACCELERATOR)

parser = argparse.ArgumentParser()
parser.add_argument("--dist-backend", default=COLLECTIVE_BACKEND, type=str, help="nccl or gloo")  #: M301
parser.add_argument("--backend", choices=["nccl", "hccl", "gloo"])  #: M301
backend = COLLECTIVE_BACKEND  #: M301 M201
backend_of_run = COLLECTIVE_BACKEND  #: M301 M302


def setup(rank, world_size, backend=COLLECTIVE_BACKEND):  #: M301
    dist.init_process_group(COLLECTIVE_BACKEND, rank=rank, world_size=world_size)  #: M301
    dist.init_process_group(backend=COLLECTIVE_BACKEND)  #: M301
    group = dist.new_group(backend=COLLECTIVE_BACKEND)  #: M301
    print("using nccl")
    return group, os.environ.get("BACKEND", COLLECTIVE_BACKEND)  #: M301
