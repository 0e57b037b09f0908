"""Switches of attention kernels. Kept for the questions about them; a CPU kernel computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch_npu._missing import missing_names

_enabled = {"flash": True, "math": True, "mem_efficient": True}


def flash_sdp_enabled() -> bool:
    """As set."""
    return _enabled["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Kept for flash_sdp_enabled."""
    _enabled["flash"] = enabled


def math_sdp_enabled() -> bool:
    """As set."""
    return _enabled["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Kept for math_sdp_enabled."""
    _enabled["math"] = enabled


def mem_efficient_sdp_enabled() -> bool:
    """As set."""
    return _enabled["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Kept for mem_efficient_sdp_enabled."""
    _enabled["mem_efficient"] = enabled


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True
) -> Iterator[None]:
    """The three switches inside a `with`."""
    before = dict(_enabled)
    _enabled.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient)
    try:
        yield
    finally:
        _enabled.update(before)


def preferred_linalg_library(backend: object = None) -> object:
    """torch's own choice; there is one library."""
    import torch

    return torch._C._LinalgBackend.Default


__getattr__ = missing_names(__name__)
