import torch.distributed as dist


def setup(args):
    dist.init_process_group(backend="hccl", init_method="tcp://127.0.0.1:23456", rank=0, world_size=1)  #: M304
    dist.init_process_group("hccl", init_method=args.dist_url)  #: M304
    dist.init_process_group("hccl", init_method="env://")
