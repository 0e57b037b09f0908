import torch
import torch_npu


def place(model, index, args):
    a = torch.device(f"npu:{index}")  #: M105
    b = "npu:{}".format(args.gpu)  #: M105
    c = "npu:%d" % index  #: M105
    d = "npu:" + str(index)  #: M105
    model.to(f'npu:{args.local_rank % 8}')  #: M105
    return a, b, c, d
