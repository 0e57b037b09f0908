import torch
import torch_npu

torch.npu.matmul.allow_hf32 = True  #: M804
torch.npu.conv.allow_hf32 = False  #: M804
