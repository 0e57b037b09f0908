"""Autocast state by torch_npu's names."""

from __future__ import annotations

import torch

from torch_npu._missing import missing_names


def is_autocast_enabled() -> bool:
    """Whether autocast is on for npu."""
    return torch.is_autocast_enabled("npu")


def set_autocast_enabled(enable: bool) -> None:
    """Turn autocast for npu on or off."""
    torch.set_autocast_enabled("npu", enable)


def get_autocast_dtype() -> torch.dtype:
    """The type that autocast for npu uses."""
    return torch.get_autocast_dtype("npu")


def set_autocast_dtype(dtype: torch.dtype) -> None:
    """Choose the type that autocast for npu uses."""
    torch.set_autocast_dtype("npu", dtype)


__getattr__ = missing_names(__name__)
