import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def resume(path, index):
    a = torch.load(path, map_location=ACCELERATOR)  #: M604
    b = torch.load(path, f"{ACCELERATOR}:0")  #: M604
    c = torch.load(path, map_location=f"{ACCELERATOR}:{index}")  #: M105
    return a, b, c
