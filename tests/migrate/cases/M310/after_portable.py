import torch
ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
COLLECTIVE_BACKEND = torch.distributed.get_default_backend_for_device(ACCELERATOR)

BACKENDS = {"cpu": "gloo", "npu": "hccl", "cuda": "nccl"}  #: M310
BOTH = {"cuda": "nccl", "npu": "hccl"}
RUNS = {"cpu": print, "cuda": repr}  #: M310
SETTINGS = {"dist_backend": COLLECTIVE_BACKEND, "epochs": 3}  #: M301
