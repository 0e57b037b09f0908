import torch

if False:
    pass
# torch.cuda.set_device(0)
#     x = x.cuda(non_blocking=True)
"""
torch.cuda.synchronize()
"""
