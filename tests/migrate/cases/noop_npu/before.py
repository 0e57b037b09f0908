import torch
import torch_npu

torch.npu.set_device(0)
x = torch.ones(2).npu()
scaler = torch.npu.amp.GradScaler()
torch.distributed.init_process_group("hccl")
