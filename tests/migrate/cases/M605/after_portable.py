import torch
from torch.utils.data import DataLoader

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def loader(dataset):
    return DataLoader(dataset, pin_memory=True, pin_memory_device=ACCELERATOR)  #: M605
