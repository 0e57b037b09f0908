import torch


def resume(path, rank):
    first = torch.load(path, map_location={"cuda:0": "cuda:1"})  #: M602
    map_location = {"cuda:%d" % 0: "cuda:%d" % rank}  #: M105
    return first, torch.load(path, map_location=map_location)
