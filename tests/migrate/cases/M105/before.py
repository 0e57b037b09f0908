import torch


def place(model, index, args):
    a = torch.device(f"cuda:{index}")  #: M105
    b = "cuda:{}".format(args.gpu)  #: M105
    c = "cuda:%d" % index  #: M105
    d = "cuda:" + str(index)  #: M105
    model.to(f'cuda:{args.local_rank % 8}')  #: M105
    return a, b, c, d
