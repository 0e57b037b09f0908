import importlib
import sys

import torch
import torch_npu

cuda = getattr(torch, "npu")  #: M207
if hasattr(torch, "npu") and cuda.is_available():  #: M207
    pass
mode = getattr(torch.npu, "amp")  #: M201
graph = getattr(torch.npu, "NPUGraph")  #: M207 M201


def lookup(name):
    module = importlib.import_module("torch.npu")  #: M207
    eval("torch.cuda.synchronize()")  #: M207
    return getattr(torch.npu, name), module, sys.modules["torch.cuda"]  #: M207 M201 M207
