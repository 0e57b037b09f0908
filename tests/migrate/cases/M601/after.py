import torch


def resume(model, path):
    checkpoint = torch.load(path, map_location="cpu")  #: M601
    weights = torch.load(f=path, weights_only=True, map_location="cpu")  #: M601
    kept = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    return weights, kept
