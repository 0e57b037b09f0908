try:
    from apex.parallel import DistributedDataParallel as DDP  #: M510
except ImportError:
    raise ImportError("install apex to run this")
import torch


def wrap(model):
    return DDP(model, delay_allreduce=True)  #: M503
