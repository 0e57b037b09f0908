import os

os.environ["NCCL_IB_DISABLE"] = "1"  #: M703
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  #: M703
os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  #: M703
os.environ["NCCL_SOMETHING_NEW"] = "1"  #: M703
