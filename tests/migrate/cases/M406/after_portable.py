import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

scaler = torch.amp.GradScaler(ACCELERATOR)  #: M406
other = torch.GradScaler(ACCELERATOR, enabled=False)  #: M406
if torch.is_autocast_enabled(ACCELERATOR):  #: M406
    pass
