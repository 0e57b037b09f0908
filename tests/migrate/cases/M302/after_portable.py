import torch
import torch.distributed as dist

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
COLLECTIVE_BACKEND = torch.distributed.get_default_backend_for_device(ACCELERATOR)

if torch.distributed.is_backend_available(COLLECTIVE_BACKEND):  #: M302
    print("fast")
