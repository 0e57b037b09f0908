import torch.distributed as dist
import torch_npu


def check(args):
    if dist.get_backend() == "hccl":  #: M303
        pass
    assert args.backend in ["gloo", "hccl"]  #: M303
    if args.dist_backend != "hccl":  #: M303
        pass
    if args.backend == "gloo":
        pass
