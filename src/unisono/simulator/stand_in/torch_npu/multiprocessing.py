"""torch_npu.multiprocessing: NPU tensors do not travel between processes here; send their CPU copies."""

from torch_npu._missing import missing_names

__getattr__ = missing_names(__name__)
