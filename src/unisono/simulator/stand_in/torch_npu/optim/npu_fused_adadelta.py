"""Adadelta."""

from __future__ import annotations

import torch

from torch_npu.optim.npu_fused_optim_base import FusedRules, ParamsT


class NpuFusedAdadelta(FusedRules, torch.optim.Adadelta):
    """torch.optim.Adadelta by torch_npu's signature."""

    def __init__(
        self, params: ParamsT, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0
    ) -> None:
        torch.optim.Adadelta.__init__(self, params, lr, rho, eps, weight_decay, foreach=False)
