import torch


def where(x, model):
    if x.is_cuda and not next(model.parameters()).is_cuda:  #: M103 M103
        return x.cpu()
    return (x + 1).is_cuda  #: M103
