"""Switches of torch_npu. Those about precision and formats are kept and have no effect: CPU kernels compute in full float32."""

from __future__ import annotations

from typing import Any

from torch_npu._missing import missing_names
from torch_npu._runtime import chip, device_index, extension
from torch_npu.npu.streams import get_stream_limit, reset_stream_limit, set_stream_limit
from torch_npu.npu.utils import ErrCode, pta_error

_options: dict[str, Any] = {"jitCompile": "enable" if chip.jit_compile else "disable"}
_device_limits: dict[int, dict[str, int]] = {}


def set_option(option: dict[str, Any]) -> None:
    """Keep ACL options.

    Raises:
        TypeError: not a dict.
    """
    if not isinstance(option, dict):
        raise TypeError("npu option must be a dict." + pta_error(ErrCode.TYPE))
    _options.update(option)


def set_compile_mode(jit_compile: bool = False) -> None:
    """Kept for is_jit_compile_false; nothing is compiled here."""
    _options["jitCompile"] = "enable" if jit_compile else "disable"


def is_jit_compile_false() -> bool:
    """Whether operators come from binaries instead of being compiled for each shape."""
    return bool(_options["jitCompile"] == "disable")


def set_mm_bmm_format_nd(is_nd: bool = True) -> None:
    """Kept for get_mm_bmm_format_nd."""
    _options["mm_bmm_nd"] = bool(is_nd)


def get_mm_bmm_format_nd() -> bool:
    """As set; True by default."""
    return bool(_options.get("mm_bmm_nd", True))


def set_device_limit(device: Any, cube_num: int = -1, vector_num: int = -1) -> None:
    """Kept for get_device_limit."""
    limit = dict(get_device_limit(device))
    if cube_num > 0:
        limit["cube_core_num"] = cube_num
    if vector_num > 0:
        limit["vector_core_num"] = vector_num
    _device_limits[device_index(device)] = limit


def get_device_limit(device: Any) -> dict[str, int]:
    """Cores that a device may use: all, but for set_device_limit."""
    index = device_index(device)
    extension.memory_counters(index)
    return _device_limits.get(index, {"cube_core_num": chip.cube_cores, "vector_core_num": chip.vector_cores})


def init_dump() -> None:
    """Dumping is not simulated; starting it is accepted and does nothing."""


def finalize_dump() -> None:
    """Ends what init_dump did not begin."""


class _Precision:
    """`torch.npu.conv` and `torch.npu.matmul`: the switch of HF32, the shortened float32 of the chip."""

    def __init__(self, allow_hf32: bool) -> None:
        self.allow_hf32 = allow_hf32
        self.cube_math_type: Any = None


class _Config:
    """`torch.npu.config`."""

    def __init__(self) -> None:
        self.allow_internal_format = chip.internal_format


conv = _Precision(allow_hf32=True)
matmul = _Precision(allow_hf32=False)
config = _Config()

__all__ = ["get_stream_limit", "reset_stream_limit", "set_stream_limit"]
__getattr__ = missing_names(__name__)
