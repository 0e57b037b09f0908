import torch
import torch_npu
from torch.npu import amp  #: M204
from torch.npu.amp import autocast as cast  #: M204


def forward(model, x, args):
    with torch.npu.amp.autocast(enabled=args.amp):  #: M401
        y = model(x)
    with amp.autocast(False, torch.bfloat16):
        y = model(y)
    with cast():
        y = model(y)
    return y


@torch.npu.amp.autocast()  #: M401
def decorated(x):
    return x
