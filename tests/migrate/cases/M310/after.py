BACKENDS = {"cpu": "gloo", "npu": "hccl"}  #: M310
BOTH = {"cuda": "nccl", "npu": "hccl"}
RUNS = {"cpu": print, "npu": repr}  #: M310
SETTINGS = {"dist_backend": "hccl", "epochs": 3}  #: M301
