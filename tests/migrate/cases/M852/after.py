import torch


def labels(target):
    a = target.long()  #: M852
    return a, target.long()
