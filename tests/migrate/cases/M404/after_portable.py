import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def forward(model, x, device_type):
    with torch.autocast(ACCELERATOR, dtype=torch.float16):  #: M404
        y = model(x)
    with torch.amp.autocast(device_type=ACCELERATOR, enabled=False):  #: M404
        y = model(y)
    with torch.autocast(device_type=device_type):
        y = model(y)
    return y
