import torch

torch.backends.cuda.matmul.allow_tf32 = True  #: M804
torch.backends.cudnn.allow_tf32 = False  #: M804
