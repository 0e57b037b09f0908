import torch


def info():
    print(torch.cuda.get_arch_list())  #: M203
    torch.cuda.nccl.version()  #: M203
    print(torch.cuda.temperature(), torch.cuda.power_draw(0))  #: M203 M203
    return torch.cuda.some_new_thing()  #: M203
