import torch

scaler = torch.amp.GradScaler()  #: M406
other = torch.GradScaler(enabled=False)  #: M406
if torch.is_autocast_enabled():  #: M406
    pass
