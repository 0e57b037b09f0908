"""RMSprop."""

from __future__ import annotations

import torch

from torch_npu.optim.npu_fused_optim_base import FusedRules, ParamsT


class NpuFusedRMSprop(FusedRules, torch.optim.RMSprop):
    """torch.optim.RMSprop by torch_npu's signature."""

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
    ) -> None:
        torch.optim.RMSprop.__init__(self, params, lr, alpha, eps, weight_decay, momentum, centered, foreach=False)
