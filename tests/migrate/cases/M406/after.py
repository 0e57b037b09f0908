import torch
import torch_npu

scaler = torch.amp.GradScaler("npu")  #: M406
other = torch.GradScaler("npu", enabled=False)  #: M406
if torch.is_autocast_enabled("npu"):  #: M406
    pass
