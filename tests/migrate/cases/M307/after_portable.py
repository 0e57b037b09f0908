import torch
import torch.multiprocessing as mp

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def careless(rank):
    return torch.ones(1, device=ACCELERATOR)  #: M104


def careful(rank):
    if torch.accelerator.is_available():
        torch.accelerator.set_device_index(rank)  #: M201


mp.spawn(careless, nprocs=torch.accelerator.device_count())  #: M307 M201
mp.spawn(careful, nprocs=2)
