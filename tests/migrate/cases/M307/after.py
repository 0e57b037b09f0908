import torch
import torch_npu
import torch.multiprocessing as mp


def careless(rank):
    return torch.ones(1, device="npu")  #: M104


def careful(rank):
    torch.npu.set_device(rank)  #: M201


mp.spawn(careless, nprocs=torch.npu.device_count())  #: M307 M201
mp.spawn(careful, nprocs=2)
