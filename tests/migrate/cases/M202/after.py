import torch
import torch_npu


def capture(step):
    g = torch.npu.NPUGraph()  #: M202 M811
    step()
    return g


allocator = torch.npu.NPUPluggableAllocator  #: M202
