import torch


def resume(path, args):
    a = torch.load(path, map_location=lambda storage, loc: storage.cuda(args.gpu))  #: M603
    b = torch.load(path, map_location=lambda storage, loc: storage)
    return a, b
