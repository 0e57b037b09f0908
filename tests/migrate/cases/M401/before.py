import torch
from torch.cuda import amp  #: M204
from torch.cuda.amp import autocast as cast  #: M204


def forward(model, x, args):
    with torch.cuda.amp.autocast(enabled=args.amp):  #: M401
        y = model(x)
    with amp.autocast(False, torch.bfloat16):
        y = model(y)
    with cast():
        y = model(y)
    return y


@torch.cuda.amp.autocast()  #: M401
def decorated(x):
    return x
