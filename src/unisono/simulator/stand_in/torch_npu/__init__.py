"""Stand-in for torch_npu: the same names over simulated NPUs. On the path of processes that `unisono simulate` starts."""

from __future__ import annotations

import os
import sys
from typing import Any

# `import torch` would load this package again, by its entry point, before it is complete.
ORG_AUTOLOAD = os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1")
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch  # noqa: E402  # with the switch off
from torch.utils.backend_registration import generate_methods_for_privateuse1_backend  # noqa: E402  # with the switch off

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = ORG_AUTOLOAD

from torch_npu import _printing, _runtime  # noqa: E402  # these need torch
from torch_npu._missing import ModuleNotSimulatedError, NotSimulatedError, missing_names, report_missing_modules  # noqa: E402  # needs torch

is_simulated = True
simulator_settings = _runtime.settings
unsupported_dtype = [torch.quint8, torch.quint4x2, torch.quint2x4, torch.qint32, torch.qint8]

_runtime.take_backend_slot()
report_missing_modules()

from torch_npu import npu  # noqa: E402  # needs the slot

torch._register_device_module("npu", npu)
for _name, _module in list(sys.modules.items()):
    if _name == "torch_npu.npu" or _name.startswith("torch_npu.npu."):
        sys.modules.setdefault("torch." + _name.removeprefix("torch_npu."), _module)

_runtime.extension.register_operators()
generate_methods_for_privateuse1_backend(
    for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True, unsupported_dtype=unsupported_dtype
)
# Backward runs on the calling thread, as it does for CPU tensors: the same thread-local settings, the same speed.
torch._C._set_multithreading_enabled(False)

from torch_npu import (  # noqa: E402  # these use the device
    _faults,
    _loops,
    _operators,
    contrib,
    distributed,
    multiprocessing,
    optim,
    profiler,
    utils,
    version,
)
from torch_npu._constants import *  # noqa: E402, F403  # the numbers of types and formats
from torch_npu._operators import get_npu_format  # noqa: E402  # uses the device
from torch_npu.version import __version__  # noqa: E402  # beside its module

distributed.register_backend()
_printing.print_in_float32()
_loops.choose_as_on_the_cpu()
_faults.plan(_runtime.settings)

__all__ = [
    "ModuleNotSimulatedError",
    "NotSimulatedError",
    "__version__",
    "contrib",
    "distributed",
    "get_npu_format",
    "is_simulated",
    "multiprocessing",
    "npu",
    "optim",
    "profiler",
    "simulator_settings",
    "unsupported_dtype",
    "utils",
    "version",
]

_missing = missing_names(__name__)


def __getattr__(name: str) -> Any:
    return _operators.find(name) or _missing(name)


def _autoload() -> None:
    """Entry point of torch.backends: importing this module has done it all."""
