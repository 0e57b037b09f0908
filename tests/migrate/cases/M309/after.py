import torch
import torch_npu
from torch.distributed.device_mesh import init_device_mesh

mesh = init_device_mesh("npu", (2, 4))  #: M309
