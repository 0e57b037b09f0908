import torch
from torch import nn

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def accelerator_device(index=None):
    """The accelerator with this index (the current one by default), or the CPU where there is none."""
    if isinstance(index, (str, torch.device)):
        return torch.device(index)
    if index is None or ACCELERATOR == "cpu":
        return torch.device(ACCELERATOR)
    return torch.device(ACCELERATOR, index)


def train(model, criterion, images, target, args, device_index):
    model = model.to(ACCELERATOR)  #: M102
    model.to(accelerator_device(args.gpu))  #: M102
    criterion = nn.CrossEntropyLoss().to(f"{ACCELERATOR}:0")  #: M102
    images = images.to(accelerator_device(device_index), non_blocking=True)  #: M102
    target = target.to(accelerator_device(args.gpu), non_blocking=True)  #: M102
    total = (images + target).to(ACCELERATOR)  #: M102
    batch = [item.to(ACCELERATOR, non_blocking=True) for item in (images, target)]  #: M102
    moved = torch.stack(  #: M102
        batch
    ).to(ACCELERATOR)
    moves = map(torch.Tensor.cuda, batch)  #: M102
    return model, criterion, total, moved, moves
