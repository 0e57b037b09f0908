import torch
import torch_npu


def where(x, model):
    if x.is_npu and not next(model.parameters()).is_npu:  #: M103 M103
        return x.cpu()
    return (x + 1).is_npu  #: M103
