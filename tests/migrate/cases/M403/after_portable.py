import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

scaler = torch.amp.GradScaler(ACCELERATOR, enabled=True)  #: M403
other = torch.amp.GradScaler(device=ACCELERATOR)  #: M403
