import torch


def fast(model):
    plain = torch.compile(model, backend="aot_eager")
    return torch.compile(model, mode="max-autotune"), plain  #: M809
