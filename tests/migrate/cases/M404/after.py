import torch
import torch_npu


def forward(model, x, device_type):
    with torch.autocast("npu", dtype=torch.float16):  #: M404
        y = model(x)
    with torch.amp.autocast(device_type="npu", enabled=False):  #: M404
        y = model(y)
    with torch.autocast(device_type=device_type):
        y = model(y)
    return y
