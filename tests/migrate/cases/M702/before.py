import os

os.environ["NCCL_DEBUG"] = "INFO"  #: M702
os.environ["NCCL_BUFFSIZE"] = "4194304"  #: M702
home = os.environ.get("CUDA_HOME")  #: M702
