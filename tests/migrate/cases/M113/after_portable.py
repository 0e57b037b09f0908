import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def convert(x):
    y = x.to(ACCELERATOR, torch.float32)  #: M113
    if x.type() == "torch.cuda.HalfTensor":  #: M113
        y = y.half()
    return y
