import torch.distributed as dist


def check(args):
    if dist.get_backend() == "nccl":  #: M303
        pass
    assert args.backend in ["gloo", "nccl"]  #: M303
    if args.dist_backend != "nccl":  #: M303
        pass
    if args.backend == "gloo":
        pass
