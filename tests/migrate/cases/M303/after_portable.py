import torch.distributed as dist


def check(args):
    if dist.get_backend() in ("nccl", "hccl"):  #: M303
        pass
    assert args.backend in ["gloo", "nccl", "hccl"]  #: M303
    if args.dist_backend not in ("nccl", "hccl"):  #: M303
        pass
    if args.backend == "gloo":
        pass
