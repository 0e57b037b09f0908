import torch


def capture(step):
    g = torch.cuda.CUDAGraph()  #: M202 M811
    step()
    return g


allocator = torch.cuda.CUDAPluggableAllocator  #: M202
