import torch
import torch_npu
from torch import nn


def train(model, criterion, images, target, args, device_index):
    model = model.npu()  #: M102
    model.npu(args.gpu)  #: M102
    criterion = nn.CrossEntropyLoss().npu(0)  #: M102
    images = images.npu(device_index, non_blocking=True)  #: M102
    target = target.npu(device=args.gpu, non_blocking=True)  #: M102
    total = (images + target).npu(None)  #: M102
    batch = [item.npu(non_blocking=True) for item in (images, target)]  #: M102
    moved = torch.stack(  #: M102
        batch
    ).npu()
    moves = map(torch.Tensor.npu, batch)  #: M102
    return model, criterion, total, moved, moves
