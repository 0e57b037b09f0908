import torch


def where(x, model):
    if x.device.type in ("cuda", "npu") and not next(model.parameters()).device.type in ("cuda", "npu"):  #: M103 M103
        return x.cpu()
    return (x + 1).device.type in ("cuda", "npu")  #: M103
