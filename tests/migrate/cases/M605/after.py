from torch.utils.data import DataLoader
import torch_npu


def loader(dataset):
    return DataLoader(dataset, pin_memory=True, pin_memory_device="npu")  #: M605
