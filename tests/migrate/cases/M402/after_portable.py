import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

scaler = torch.amp.GradScaler(ACCELERATOR, enabled=True)  #: M402
second = torch.amp.GradScaler(ACCELERATOR, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=False)  #: M402
third = torch.amp.GradScaler(ACCELERATOR, init_scale=1024)
