import torch
import torch_npu


def resume(path, index):
    a = torch.load(path, map_location="npu")  #: M604
    b = torch.load(path, "npu:0")  #: M604
    c = torch.load(path, map_location=f"npu:{index}")  #: M105
    return a, b, c
