import torch

scaler = torch.amp.GradScaler("cuda", enabled=True)  #: M403
other = torch.amp.GradScaler(device="cuda")  #: M403
