"""Adam."""

from __future__ import annotations

import torch

from torch_npu.optim.npu_fused_optim_base import FusedRules, ParamsT


class NpuFusedAdam(FusedRules, torch.optim.Adam):
    """torch.optim.Adam by torch_npu's signature."""

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
    ) -> None:
        torch.optim.Adam.__init__(self, params, lr, betas, eps, weight_decay, amsgrad, foreach=False)
