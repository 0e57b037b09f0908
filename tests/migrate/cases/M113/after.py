import torch
import torch_npu


def convert(x):
    y = x.type("torch.npu.FloatTensor")  #: M113
    if x.type() == "torch.npu.HalfTensor":  #: M113
        y = y.half()
    return y
