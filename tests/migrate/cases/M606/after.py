from torch.utils.data import DataLoader


def loader(dataset):
    return DataLoader(dataset, num_workers=4, multiprocessing_context="fork")  #: M606
