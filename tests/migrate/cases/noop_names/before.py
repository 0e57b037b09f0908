import torch


class Flags:
    use_cuda = True
    cuda = False
    nccl_rings = 3


def cuda(x):
    return x


def lookups(config, state, path):
    flag = Flags.cuda or config.cuda
    cuda_count = config["cuda"]
    state["cuda"] = flag
    name = config.get("cuda")
    torch.save(state, "ckpt_cuda.pt")
    rows = {"cuda_time": 1}
    return cuda(path), cuda_count, name, rows, hasattr(config, "cuda"), open("cuda")
