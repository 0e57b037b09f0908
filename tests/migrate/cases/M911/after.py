import torch
import torch_npu
from torch.npu import mstx as nvtx  #: M204


def step(model, x):
    torch.npu.mstx.range_push("forward")  #: M911
    y = model(x)
    torch.npu.mstx.range_pop()  #: M911
    with nvtx.mstx_range("loss"):  #: M911
        y = y.sum()
    torch.npu.mstx.mark("end")  #: M911
    return y
