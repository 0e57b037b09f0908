import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def accelerator_device(index=None):
    """The accelerator with this index (the current one by default), or the CPU where there is none."""
    if isinstance(index, (str, torch.device)):
        return torch.device(index)
    if index is None or ACCELERATOR == "cpu":
        return torch.device(ACCELERATOR)
    return torch.device(ACCELERATOR, index)


def resume(path, args):
    a = torch.load(path, map_location=accelerator_device(args.gpu))  #: M603
    b = torch.load(path, map_location=lambda storage, loc: storage)
    return a, b
