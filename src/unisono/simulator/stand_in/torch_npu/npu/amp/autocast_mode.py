"""autocast for npu."""

from __future__ import annotations

import functools
from typing import Any

import torch


class autocast(torch.amp.autocast_mode.autocast):  # torch_npu's spelling
    """torch.autocast("npu"): float16 by default."""

    def __init__(self, enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True) -> None:
        super().__init__("npu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: torch.dtype | None = None) -> Any:
    """For the forward of an autograd function: autocast as it was, or inputs cast and autocast off."""
    if fwd is None:
        return functools.partial(custom_fwd, cast_inputs=cast_inputs)
    return torch.amp.custom_fwd(fwd, device_type="npu", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """For the backward of an autograd function: autocast as the forward had it."""
    return torch.amp.custom_bwd(bwd, device_type="npu")
