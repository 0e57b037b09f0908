import torch
import torch_npu

device = "npu" if torch.npu.is_available() else "cpu"  #: M107 M201
other = torch.device("npu:0" if torch.npu.is_available() else "cpu")  #: M107 M201


def choose(use_cuda, no_cuda):
    first = torch.device("npu" if use_cuda else "cpu")  #: M107
    second = "npu" if torch.npu.is_available() and not no_cuda else "cpu"  #: M107 M201
    third = "cpu" if not torch.npu.is_available() else "npu"  #: M107 M201
    fourth = "npu" if torch.npu.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"  #: M107 M201
    return first, second, third, fourth
