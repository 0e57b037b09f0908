import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def place(model, index, args):
    a = torch.device(f"{ACCELERATOR}:{index}")  #: M105
    b = (ACCELERATOR + ":{}").format(args.gpu)  #: M105
    c = "%s:%d" % (ACCELERATOR, index)  #: M105
    d = ACCELERATOR + ":" + str(index)  #: M105
    model.to(f'{ACCELERATOR}:{args.local_rank % 8}')  #: M105
    return a, b, c, d
