import torch


def fits(step):
    try:
        step()
    except torch.OutOfMemoryError:  #: M206
        return False
    return True
