import torch
import torch_npu
from torch.npu.amp import GradScaler  #: M204

scaler = torch.npu.amp.GradScaler(enabled=True)  #: M402
second = torch.npu.amp.GradScaler(2.0**16, 2.0, 0.5, 2000, enabled=False)  #: M402
third = GradScaler(init_scale=1024)
