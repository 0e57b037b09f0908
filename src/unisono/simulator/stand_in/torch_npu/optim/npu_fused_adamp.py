"""AdamP (Heo et al. 2020): Adam whose update leaves out what would only grow a scale-invariant weight."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from torch_npu.optim.npu_fused_optim_base import NpuFusedOptimizerBase, ParamsT, require_at_least_zero


def _by_channel(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(tensor.size(0), -1)


def _by_layer(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(1, -1)


class NpuFusedAdamP(NpuFusedOptimizerBase):
    """AdamP by torch_npu's signature."""

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        delta: float = 0.1,
        wd_ratio: float = 0.1,
        nesterov: bool = False,
    ) -> None:
        require_at_least_zero(lr=lr, eps=eps, weight_decay=weight_decay, delta=delta, wd_ratio=wd_ratio)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "delta": delta, "wd_ratio": wd_ratio,
            "nesterov": nesterov,
        }  # fmt: skip
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One update."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return loss

    def _update(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        gradient = parameter.grad
        assert gradient is not None
        state = self.state[parameter]
        if not state:
            state["step"] = 0
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        beta1, beta2 = group["betas"]
        average = state["exp_avg"].mul_(beta1).add_(gradient, alpha=1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        denominator = (square.sqrt() / math.sqrt(1 - beta2 ** state["step"])).add_(group["eps"])
        direction = beta1 * average + (1 - beta1) * gradient if group["nesterov"] else average
        update = direction / denominator
        decay_share = 1.0
        if parameter.dim() > 1:
            update, decay_share = _project(parameter, gradient, update, group)
        if group["weight_decay"] > 0:
            parameter.mul_(1 - group["lr"] * group["weight_decay"] * decay_share)
        parameter.add_(update, alpha=-group["lr"] / (1 - beta1 ** state["step"]))


def _project(
    parameter: torch.Tensor, gradient: torch.Tensor, update: torch.Tensor, group: dict[str, Any]
) -> tuple[torch.Tensor, float]:
    """The update without its part along the weight, where gradient and weight are nearly orthogonal."""
    shape = [-1] + [1] * (parameter.dim() - 1)
    views: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (_by_channel, _by_layer)
    for view in views:
        likeness = F.cosine_similarity(view(gradient), view(parameter), dim=1, eps=group["eps"]).abs_()
        if likeness.max() < group["delta"] / math.sqrt(view(parameter).size(1)):
            unit = parameter / view(parameter).norm(dim=1).view(shape).add_(group["eps"])
            along = view(unit * update).sum(dim=1).view(shape)
            return update - unit * along, float(group["wd_ratio"])
    return update, 1.0
