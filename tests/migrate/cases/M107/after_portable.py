import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

device = ACCELERATOR  #: M107 M201
other = torch.device(f"{ACCELERATOR}:0")  #: M107 M201


def choose(use_cuda, no_cuda):
    first = torch.device(ACCELERATOR if use_cuda else "cpu")  #: M107
    second = ACCELERATOR if torch.accelerator.is_available() and not no_cuda else "cpu"  #: M107 M201
    third = "cpu" if not torch.accelerator.is_available() else ACCELERATOR  #: M107 M201
    fourth = ACCELERATOR if torch.accelerator.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"  #: M107 M201
    return first, second, third, fourth
