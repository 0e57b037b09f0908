import torch
import torch.multiprocessing as mp


def careless(rank):
    return torch.ones(1, device="cuda")  #: M104


def careful(rank):
    torch.cuda.set_device(rank)  #: M201


mp.spawn(careless, nprocs=torch.cuda.device_count())  #: M307 M201
mp.spawn(careful, nprocs=2)
