import torch
from torch.nn.attention import sdpa_kernel

torch.backends.cuda.enable_flash_sdp(True)  #: M806
context = sdpa_kernel  #: M806
