import torch
from torch.distributed.device_mesh import init_device_mesh

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

mesh = init_device_mesh(ACCELERATOR, (2, 4))  #: M309
