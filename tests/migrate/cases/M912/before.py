import torch

torch.cuda.cudart().cudaProfilerStart()  #: M912
