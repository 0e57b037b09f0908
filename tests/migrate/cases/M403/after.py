import torch
import torch_npu

scaler = torch.amp.GradScaler("npu", enabled=True)  #: M403
other = torch.amp.GradScaler(device="npu")  #: M403
