from torch.utils.data import DataLoader


def loader(dataset):
    return DataLoader(dataset, pin_memory=True, pin_memory_device="cuda")  #: M605
