import torch
from torch.cuda.amp import GradScaler  #: M204

scaler = torch.cuda.amp.GradScaler(enabled=True)  #: M402
second = torch.cuda.amp.GradScaler(2.0**16, 2.0, 0.5, 2000, False)  #: M402
third = GradScaler(init_scale=1024)
