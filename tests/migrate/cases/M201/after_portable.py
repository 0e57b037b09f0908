import torch
import torch as th

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

gpu = torch.get_device_module(ACCELERATOR)  #: M201


def use(rank):
    if torch.accelerator.is_available():
        torch.accelerator.set_device_index(rank)  #: M201
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()  #: M201
    if torch.accelerator.is_available():  #: M201
        torch.accelerator.empty_cache()  #: M201
    torch.manual_seed(1)  #: M201
    start = torch.Event(enable_timing=True)  #: M201
    stream: torch.Stream = torch.Stream()  #: M201 M201
    with torch.get_device_module(ACCELERATOR).stream(stream):  #: M201
        start.record()
    print(torch.get_device_module(ACCELERATOR).memory_summary(), torch.get_device_module(ACCELERATOR).get_device_name(0))  #: M201 M201
    state = torch.get_device_module(ACCELERATOR).get_rng_state()  #: M201
    return gpu.device_count(), state


def local(device):
    cuda = device.type != "cpu"
    return cuda
