import torch

norm = torch.nn.LayerNorm(16, eps=1e-6)  #: M506
