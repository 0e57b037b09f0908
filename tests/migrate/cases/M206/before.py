import torch


def fits(step):
    try:
        step()
    except torch.cuda.OutOfMemoryError:  #: M206
        return False
    return True
