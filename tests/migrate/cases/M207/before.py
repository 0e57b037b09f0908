import importlib
import sys

import torch

cuda = getattr(torch, "cuda")  #: M207
if hasattr(torch, "cuda") and cuda.is_available():  #: M207
    pass
mode = getattr(torch.cuda, "amp")  #: M201
graph = getattr(torch.cuda, "CUDAGraph")  #: M207 M201


def lookup(name):
    module = importlib.import_module("torch.cuda")  #: M207
    eval("torch.cuda.synchronize()")  #: M207
    return getattr(torch.cuda, name), module, sys.modules["torch.cuda"]  #: M207 M201 M207
