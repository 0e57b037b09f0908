import torch

torch.backends.cuda.cufft_plan_cache.max_size = 10  #: M807
