import torch


def resume(path, index):
    a = torch.load(path, map_location="cuda")  #: M604
    b = torch.load(path, "cuda:0")  #: M604
    c = torch.load(path, map_location=f"cuda:{index}")  #: M105
    return a, b, c
