import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def resume(path, rank):
    first = torch.load(path, map_location={"cuda:0": f"{ACCELERATOR}:1"})  #: M602
    map_location = {"cuda:%d" % 0: "%s:%d" % (ACCELERATOR, rank)}  #: M105
    return first, torch.load(path, map_location=map_location)
