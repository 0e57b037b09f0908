import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def forward(model, x, args):
    with torch.autocast(ACCELERATOR, enabled=args.amp):  #: M401
        y = model(x)
    with torch.autocast(ACCELERATOR, enabled=False, dtype=torch.bfloat16):
        y = model(y)
    with torch.autocast(ACCELERATOR):
        y = model(y)
    return y


@torch.autocast(ACCELERATOR)  #: M401
def decorated(x):
    return x
