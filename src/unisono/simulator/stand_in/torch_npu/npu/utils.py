"""Devices of a simulated NPU: which there are, which is current, what they are called."""

from __future__ import annotations

import os
from enum import IntEnum
from typing import Any

import torch

from torch_npu._missing import missing_names
from torch_npu._runtime import chip, device_index, extension, saturates


def init() -> None:
    """Initialise the NPU in this process; any use does it too."""
    extension.initialize()


_lazy_init = init


def is_initialized() -> bool:
    """Whether this process has used an NPU."""
    return bool(extension.is_initialized())


def _is_in_bad_fork() -> bool:
    return bool(extension.is_bad_fork())


def is_available() -> bool:
    """Whether there is an NPU; True but for ASCEND_RT_VISIBLE_DEVICES naming none."""
    return device_count() > 0


def device_count() -> int:
    """Simulated NPUs that this process sees."""
    return int(extension.device_count())


def current_device() -> int:
    """The current device's number."""
    init()
    return int(extension.current_device())


def set_device(device: Any) -> None:
    """Make a device current; a negative number changes nothing."""
    index = device_index(device)
    if index >= 0:
        extension.set_device(index)


def _exchange_device(device: int) -> int:
    return int(extension.exchange_device(device))


_maybe_exchange_device = _exchange_device


def synchronize(device: Any = None) -> None:
    """Work is done when a call returns, so there is nothing to wait for; the device is checked."""
    with device_context(device_index(device)):
        pass


class device_context:  # torch_npu's `device` is spelled in lower case
    """Make a device current inside a `with`."""

    def __init__(self, device: Any) -> None:
        self.idx = device_index(device, optional=False)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(self, *_: object) -> None:
        _exchange_device(self.prev_idx)


class device_of(device_context):
    """Make the device of a tensor or storage current; one on the CPU changes nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.device.type == "npu" else -1)


class _NPUDeviceProperties:
    """What get_device_properties returns."""

    def __init__(self) -> None:
        self.name = chip.device_name
        self.total_memory = chip.memory_bytes
        self.L2_cache_size = chip.l2_cache_bytes
        self.cube_core_num = chip.cube_cores
        self.vector_core_num = chip.vector_cores
        self.multi_processor_count = chip.cube_cores

    def __repr__(self) -> str:
        return (
            f"_NPUDeviceProperties(name='{self.name}', total_memory={self.total_memory // 2**20}MB, "
            f"cube_core_num={self.cube_core_num}, vector_core_num={self.vector_core_num}, "
            f"L2_cache_size={self.L2_cache_size // 2**20}MB)"
        )


def _checked(device: Any) -> int:
    """The device's number; raises for one that does not exist."""
    index = device_index(device)
    extension.memory_counters(index)
    return index


def get_device_properties(device_name: Any = None) -> _NPUDeviceProperties:
    """Name, memory in bytes and core counts of a device."""
    _checked(device_name)
    return _NPUDeviceProperties()


def get_device_name(device_name: Any = None) -> str:
    """The chip's name."""
    _checked(device_name)
    return chip.device_name


def get_device_capability(device: Any = None) -> None:
    """NPUs have no compute capability: None, as in torch_npu."""
    _checked(device)


def get_soc_version() -> int:
    """torch_npu's number of the chip."""
    return chip.soc_version


def can_device_access_peer(device_id: Any, peer_device_id: Any) -> bool:
    """Whether two devices of the server reach each other; never a device itself. On a 910A: those of one ring."""
    device, peer = _checked(device_id), _checked(peer_device_id)
    return device != peer and (not chip.two_rings or device // 4 == peer // 4)


def is_bf16_supported(including_emulation: bool = False) -> bool:
    """Whether the chip computes in bfloat16."""
    return chip.bfloat16


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Types that autocast may use."""
    return [torch.float16, torch.bfloat16] if chip.bfloat16 else [torch.float16]


def is_support_inf_nan() -> bool:
    """False on a chip whose fp16 arithmetic saturates."""
    return not saturates


def get_npu_overflow_flag() -> bool:
    """Whether fp16 arithmetic has overflowed since the flag was cleared. On chips with inf and NaN: always False."""
    return bool(extension.overflow_flag(current_device()))


def clear_npu_overflow_flag() -> None:
    """Lower the overflow flag of the current device."""
    extension.clear_overflow_flag(current_device())


def npurt() -> Any:
    """The C runtime's module in torch_npu: there is none here."""
    return missing_names("torch_npu.npu")("npurt")()


def current_blas_handle() -> int:
    """A number that stands for the handle."""
    return 0


def ipc_collect() -> None:
    """No memory is shared between processes here."""


def get_sync_debug_mode() -> int:
    """The warning mode of synchronising calls, as set."""
    return _modes["sync_debug"]


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Kept for get_sync_debug_mode; simulated calls never wait."""
    words = {"default": 0, "warn": 1, "error": 2}
    mode = words.get(debug_mode, -1) if isinstance(debug_mode, str) else int(debug_mode)
    if mode not in (0, 1, 2):
        raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`, 0, 1, 2")
    _modes["sync_debug"] = mode


def get_task_queue_enable() -> int:
    """TASK_QUEUE_ENABLE: 1 by default, 0 with ASCEND_LAUNCH_BLOCKING=1. Kept; nothing is queued here."""
    if os.environ.get("ASCEND_LAUNCH_BLOCKING") == "1":
        return 0
    return _modes.get("task_queue", int(os.environ.get("TASK_QUEUE_ENABLE", "1") or 1))


def set_task_queue_enable(mode: int) -> None:
    """Kept for get_task_queue_enable."""
    if mode not in (0, 1, 2):
        raise RuntimeError(f"TASK_QUEUE_ENABLE is 0, 1 or 2, and not {mode}")
    _modes["task_queue"] = mode


def set_deterministic_level(level: int) -> None:
    """Levels 0, 1 and 2 are accepted; CPU kernels of one thread are deterministic in any case."""
    if level not in (0, 1, 2):
        raise ValueError(f"the deterministic level is 0, 1 or 2, and not {level}")
    _modes["deterministic_level"] = level


def set_op_timeout_ms(timeout: int) -> None:
    """Kept; a simulated operator has no time limit."""
    _modes["op_timeout_ms"] = int(timeout)


def use_compatible_impl(is_enable: bool) -> None:
    """Kept for are_compatible_impl_enabled."""
    _modes["compatible"] = int(is_enable)


def are_compatible_impl_enabled() -> bool:
    """As set by use_compatible_impl."""
    return bool(_modes.get("compatible", 0))


def stress_detect(detect_type: str = "aic") -> int:
    """A self-test of the hardware: 0, no error found. There is no hardware."""
    if detect_type not in ("aic", "p2p", "hccs"):
        raise ValueError("detect_type is aic, p2p or hccs")
    return 0


def check_uce_in_memory(device_id: int) -> int:
    """Whether memory holds an uncorrectable error: 0, no."""
    _checked(device_id)
    return 0


class ErrCode(IntEnum):
    """torch_npu's numbers of error kinds."""

    SUC = 0
    PARAM = 1
    TYPE = 2
    VALUE = 3
    PTR = 4
    INTERNAL = 5
    MEMORY = 6
    NOT_SUPPORT = 7
    NOT_FOUND = 8
    UNAVAIL = 9
    SYSCALL = 10
    TIMEOUT = 11
    PERMISSION = 12
    ACL = 100
    HCCL = 200
    GE = 300


def pta_error(error: ErrCode) -> str:
    """The line that torch_npu appends to a Python error of its own."""
    return f"\n[ERROR] (PID:{os.getpid()}, Device:{extension.current_device()}) ERR{int(error):05d} PTA {error.name.lower()}"


def prof_error(error: ErrCode) -> str:
    """The same for the profiler."""
    return pta_error(error).replace("PTA", "PROF")


class classproperty:  # torch_npu's spelling
    """A property of a class."""

    def __init__(self, func: Any) -> None:
        self.func = func

    def __get__(self, instance: object, owner: type) -> Any:
        return self.func(owner)


_modes: dict[str, int] = {"sync_debug": 0}
__getattr__ = missing_names(__name__)
