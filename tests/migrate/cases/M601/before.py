import torch


def resume(model, path):
    checkpoint = torch.load(path)  #: M601
    weights = torch.load(f=path, weights_only=True)  #: M601
    kept = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    return weights, kept
