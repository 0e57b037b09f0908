import torch
import torch.cuda  #: M204
import torch.cuda.amp as amp  #: M204
from torch import cuda as tc  #: M204
from torch.cuda import Event, Stream, get_arch_list  #: M204 M204
from torch.cuda import OutOfMemoryError, synchronize  #: M204


def run(step):
    with amp.autocast():
        step()
    try:
        synchronize()
    except OutOfMemoryError:
        tc.empty_cache()
    return Event(), Stream(), get_arch_list()  #: M203
