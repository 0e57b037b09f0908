import torch


def convert(x):
    y = x.type("torch.cuda.FloatTensor")  #: M113
    if x.type() == "torch.cuda.HalfTensor":  #: M113
        y = y.half()
    return y
