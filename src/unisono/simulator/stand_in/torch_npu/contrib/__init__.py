"""torch_npu.contrib: modules and functions beside torch's, and the import that moves CUDA scripts."""

from torch_npu._missing import missing_names
from torch_npu.contrib import function, module
from torch_npu.contrib.function import *  # noqa: F403  # as the real package does
from torch_npu.contrib.module import *  # noqa: F403  # as the real package does

__all__ = ["function", "module", *function.__all__, *module.__all__]  # lists of names
__getattr__ = missing_names(__name__)
