"""SGD."""

from __future__ import annotations

from typing import Any

import torch

from torch_npu.optim.npu_fused_optim_base import FusedRules, ParamsT, required


class NpuFusedSGD(FusedRules, torch.optim.SGD):
    """torch.optim.SGD by torch_npu's signature; the learning rate must be given."""

    def __init__(
        self,
        params: ParamsT,
        lr: Any = required,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        if lr is required:
            raise ValueError("parameter group didn't specify a value of required optimization parameter lr")
        torch.optim.SGD.__init__(self, params, lr, momentum, dampening, weight_decay, nesterov, foreach=False)
