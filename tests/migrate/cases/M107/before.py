import torch

device = "cuda" if torch.cuda.is_available() else "cpu"  #: M107 M201
other = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")  #: M107 M201


def choose(use_cuda, no_cuda):
    first = torch.device("cuda" if use_cuda else "cpu")  #: M107
    second = "cuda" if torch.cuda.is_available() and not no_cuda else "cpu"  #: M107 M201
    third = "cpu" if not torch.cuda.is_available() else "cuda"  #: M107 M201
    fourth = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"  #: M107 M201
    return first, second, third, fourth
