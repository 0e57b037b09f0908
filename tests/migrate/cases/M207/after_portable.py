import importlib
import sys

import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

cuda = torch.get_device_module(ACCELERATOR)  #: M207
if hasattr(torch, "cuda") and cuda.is_available():  #: M207
    pass
mode = getattr(torch.get_device_module(ACCELERATOR), "amp")  #: M201
graph = getattr(torch.get_device_module(ACCELERATOR), "CUDAGraph")  #: M207 M201


def lookup(name):
    module = importlib.import_module("torch.cuda")  #: M207
    eval("torch.cuda.synchronize()")  #: M207
    return getattr(torch.get_device_module(ACCELERATOR), name), module, sys.modules["torch.cuda"]  #: M207 M201 M207
