import torch
import torch as th
from torch import cuda  #: M204

gpu = torch.cuda  #: M201


def use(rank):
    torch.cuda.set_device(rank)  #: M201
    th.cuda.synchronize()  #: M201
    if cuda.is_available():  #: M201
        cuda.empty_cache()  #: M201
    torch.cuda.manual_seed_all(1)  #: M201
    start = torch.cuda.Event(enable_timing=True)  #: M201
    stream: torch.cuda.Stream = torch.cuda.Stream()  #: M201 M201
    with torch.cuda.stream(stream):  #: M201
        start.record()
    print(torch.cuda.memory_summary(), torch.cuda.get_device_name(0))  #: M201 M201
    state = torch.cuda.get_rng_state()  #: M201
    return gpu.device_count(), state


def local(device):
    cuda = device.type != "cpu"
    return cuda
