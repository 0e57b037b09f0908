BACKENDS = {"cpu": "gloo", "cuda": "nccl"}  #: M310
BOTH = {"cuda": "nccl", "npu": "hccl"}
RUNS = {"cpu": print, "cuda": repr}  #: M310
SETTINGS = {"dist_backend": "nccl", "epochs": 3}  #: M301
