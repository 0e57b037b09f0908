import torch
from torch.cuda import get_arch_list  #: M204 M204

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def run(step):
    with torch.autocast(ACCELERATOR):
        step()
    try:
        if torch.accelerator.is_available():
            torch.accelerator.synchronize()
    except torch.OutOfMemoryError:
        torch.accelerator.empty_cache()
    return torch.Event(), torch.Stream(), get_arch_list()  #: M203
