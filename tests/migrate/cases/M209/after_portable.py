import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

dtype = torch.get_autocast_dtype(ACCELERATOR)  #: M209
torch.set_autocast_dtype(ACCELERATOR, torch.bfloat16)  #: M209
