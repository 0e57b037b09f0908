import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def wrap(model, args):
    if args.one:
        model = torch.nn.DataParallel(model).to(ACCELERATOR)  #: M306 M102
    elif args.two:
        model = nn.DataParallel(model, device_ids=[0, 1])  #: M306
    elif args.three:
        model = DataParallel(model)  #: M306
    else:
        model = DistributedDataParallel(model, device_ids=None if ACCELERATOR == "cpu" else [args.gpu])
    return model, isinstance(model, nn.DataParallel)  #: M306
