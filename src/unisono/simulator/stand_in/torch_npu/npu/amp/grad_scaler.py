"""The loss scaler of torch_npu: torch's, with a fixed scale for dynamic=False, and the overflow flag of chips that saturate."""

from __future__ import annotations

from typing import Any

import torch

from torch_npu._runtime import saturates
from torch_npu.npu.utils import clear_npu_overflow_flag, get_npu_overflow_flag


class GradScaler(torch.amp.GradScaler):
    """Scales the loss for fp16. On a chip that saturates no gradient is ever inf, so the chip's overflow flag decides."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        dynamic: bool = True,
        enabled: bool = True,
    ) -> None:
        self._dynamic = dynamic
        super().__init__("npu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    def scale(self, outputs: Any) -> Any:
        """The loss times the scale; what overflowed before does not count."""
        if saturates and self._enabled:
            clear_npu_overflow_flag()
        return super().scale(outputs)

    def _unscale_grads_(
        self, optimizer: torch.optim.Optimizer, inv_scale: torch.Tensor, found_inf: torch.Tensor, allow_fp16: bool
    ) -> dict[torch.device, torch.Tensor]:
        overflowed = saturates and get_npu_overflow_flag()
        found: dict[torch.device, torch.Tensor] = super()._unscale_grads_(optimizer, inv_scale, found_inf, allow_fp16)
        for flag in found.values() if overflowed else ():
            flag.fill_(1.0)
        return found

    def update(self, new_scale: Any = None) -> None:
        """The next step's scale; a fixed one stays."""
        if not self._enabled:
            return
        scale, tracker = self._scale, self._growth_tracker
        if self._dynamic or new_scale is not None or scale is None or tracker is None:
            super().update(new_scale)
            return
        before = scale.clone()
        super().update()
        scale.copy_(before)
        tracker.fill_(0)
