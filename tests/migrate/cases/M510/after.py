import torch

try:
    pass  #: M510
except ImportError:
    raise ImportError("apex is missing")


def wrap(model):
    return torch.nn.parallel.DistributedDataParallel(model)  #: M503
