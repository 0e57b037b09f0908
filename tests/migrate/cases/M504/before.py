import apex  #: M510
import torch


def sync(model):
    return apex.parallel.convert_syncbn_model(model)  #: M504
