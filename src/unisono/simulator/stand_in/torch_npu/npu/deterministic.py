"""Determinism during backward. CPU kernels with a fixed number of threads are deterministic in any case."""

from __future__ import annotations

import torch

from torch_npu._missing import missing_names


def enable_deterministic_with_backward(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor; nothing needs to change."""
    return tensor


def disable_deterministic_with_backward(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor; nothing needs to change."""
    return tensor


__getattr__ = missing_names(__name__)
