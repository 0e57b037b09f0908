import os

import torch

os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"  #: M701
visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")  #: M701
os.environ.setdefault("NCCL_ASYNC_ERROR_HANDLING", "1")  #: M701
os.putenv("CUDA_LAUNCH_BLOCKING", "1")  #: M701
environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")  #: M701
os.environ["NCCL_SOCKET_IFNAME"] = "eth0"  #: M701
if "CUDA_VISIBLE_DEVICES" in os.environ:  #: M701
    print("CUDA_VISIBLE_DEVICES is set")
