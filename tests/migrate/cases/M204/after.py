import torch
import torch_npu
import torch.npu  #: M204
import torch.npu.amp as amp  #: M204
from torch import npu as tc  #: M204
from torch.npu import Event, Stream
from torch.cuda import get_arch_list  #: M204 M204
from torch.npu import synchronize
from torch import OutOfMemoryError  #: M204


def run(step):
    with amp.autocast():
        step()
    try:
        synchronize()
    except OutOfMemoryError:
        tc.empty_cache()
    return Event(), Stream(), get_arch_list()  #: M203
