import torch

assert torch.backends.cudnn.enabled, "cuDNN is needed"  #: M803
print(torch.backends.cudnn.version())  #: M803
