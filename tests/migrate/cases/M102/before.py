import torch
from torch import nn


def train(model, criterion, images, target, args, device_index):
    model = model.cuda()  #: M102
    model.cuda(args.gpu)  #: M102
    criterion = nn.CrossEntropyLoss().cuda(0)  #: M102
    images = images.cuda(device_index, non_blocking=True)  #: M102
    target = target.cuda(device=args.gpu, non_blocking=True)  #: M102
    total = (images + target).cuda(None)  #: M102
    batch = [item.cuda(non_blocking=True) for item in (images, target)]  #: M102
    moved = torch.stack(  #: M102
        batch
    ).cuda()
    moves = map(torch.Tensor.cuda, batch)  #: M102
    return model, criterion, total, moved, moves
