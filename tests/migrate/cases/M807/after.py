import torch
import torch_npu

torch.npu.backends.fft_plan_cache.max_size = 10  #: M807
