import torch
import torch_npu
import torch as th
from torch import npu  #: M204

gpu = torch.npu  #: M201


def use(rank):
    torch.npu.set_device(rank)  #: M201
    th.npu.synchronize()  #: M201
    if npu.is_available():  #: M201
        npu.empty_cache()  #: M201
    torch.npu.manual_seed_all(1)  #: M201
    start = torch.npu.Event(enable_timing=True)  #: M201
    stream: torch.npu.Stream = torch.npu.Stream()  #: M201 M201
    with torch.npu.stream(stream):  #: M201
        start.record()
    print(torch.npu.memory_summary(), torch.npu.get_device_name(0))  #: M201 M201
    state = torch.npu.get_rng_state()  #: M201
    return gpu.device_count(), state


def local(device):
    cuda = device.type != "cpu"
    return cuda
