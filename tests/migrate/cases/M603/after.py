import torch
import torch_npu


def resume(path, args):
    a = torch.load(path, map_location=lambda storage, loc: storage.npu(args.gpu))  #: M603
    b = torch.load(path, map_location=lambda storage, loc: storage)
    return a, b
