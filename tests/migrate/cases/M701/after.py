import os

import torch

os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "0,1"  #: M701
visible = os.environ.get("ASCEND_RT_VISIBLE_DEVICES", "")  #: M701
os.environ.setdefault("TORCH_HCCL_ASYNC_ERROR_HANDLING", "1")  #: M701
os.putenv("ASCEND_LAUNCH_BLOCKING", "1")  #: M701
environment = dict(os.environ, PYTORCH_NPU_ALLOC_CONF="expandable_segments:True")  #: M701
os.environ["HCCL_SOCKET_IFNAME"] = "eth0"  #: M701
if "ASCEND_RT_VISIBLE_DEVICES" in os.environ:  #: M701
    print("CUDA_VISIBLE_DEVICES is set")
