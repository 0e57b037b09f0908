"""Numbers that torch_npu gives to types and storage formats. Source: torch_npu 2.13's own values."""

from __future__ import annotations

from enum import IntEnum

from torch_npu._missing import real_names


class Format(IntEnum):
    """Storage formats of ACL. A simulated NPU keeps every tensor in ND and takes the others for their names only."""

    UNDEFINED = -1
    NCHW = 0
    NHWC = 1
    ND = 2
    NC1HWC0 = 3
    FRACTAL_Z = 4
    NC1HWC0_C04 = 12
    HWCN = 16
    NDHWC = 27
    FRACTAL_NZ = 29
    NCDHW = 30
    NDC1HWC0 = 32
    FRACTAL_Z_3D = 33
    NC = 35
    NCL = 47


_NUMBERS = {
    name.removeprefix("torch_npu."): int(value)
    for name, (kind, value) in real_names().items()
    if kind == "data" and name.count(".") == 1 and value.isdigit()
}
globals().update(_NUMBERS)
__all__ = ["Format", *_NUMBERS]
