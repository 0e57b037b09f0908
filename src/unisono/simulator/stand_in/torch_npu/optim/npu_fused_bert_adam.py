"""Adam as BERT's first implementation had it: no bias correction, decay in the update, a schedule of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from torch_npu.optim.npu_fused_optim_base import NpuFusedOptimizerBase, ParamsT, require_at_least_zero, required


def _rising(progress: float, warmup: float, after: float) -> float:
    return progress / warmup if progress < warmup else after


SCHEDULES: dict[str, Callable[[float, float], float]] = {
    "warmup_linear": lambda progress, warmup: _rising(progress, warmup, max((progress - 1.0) / (warmup - 1.0), 0.0)),
    "warmup_constant": lambda progress, warmup: _rising(progress, warmup, 1.0),
    "warmup_cosine": lambda progress, warmup: _rising(progress, warmup, 0.5 * (1.0 + math.cos(math.pi * progress))),
}


class NpuFusedBertAdam(NpuFusedOptimizerBase):
    """BertAdam by torch_npu's signature. warmup and t_total of -1 leave the rate constant."""

    def __init__(
        self,
        params: ParamsT,
        lr: Any = required,
        warmup: float = -1,
        t_total: int = -1,
        schedule: str = "warmup_linear",
        b1: float = 0.9,
        b2: float = 0.999,
        e: float = 1e-6,
        weight_decay: float = 0.01,
        max_grad_norm: float = -1,
    ) -> None:
        if lr is required:
            raise ValueError("parameter group didn't specify a value of required optimization parameter lr")
        require_at_least_zero(lr=lr, e=e)
        if schedule not in SCHEDULES:
            raise ValueError(f"Invalid schedule parameter: {schedule}")
        defaults = {
            "lr": lr, "schedule": schedule, "warmup": warmup, "t_total": t_total, "b1": b1, "b2": b2, "e": e,
            "weight_decay": weight_decay, "max_grad_norm": max_grad_norm,
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
            used = [parameter for parameter in group["params"] if parameter.grad is not None]
            if group["max_grad_norm"] > 0 and used:
                torch.nn.utils.clip_grad_norm_(used, group["max_grad_norm"], foreach=False)
            for parameter in used:
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
        state["exp_avg"].mul_(group["b1"]).add_(gradient, alpha=1 - group["b1"])
        state["exp_avg_sq"].mul_(group["b2"]).addcmul_(gradient, gradient, value=1 - group["b2"])
        update = state["exp_avg"] / (state["exp_avg_sq"].sqrt() + group["e"])
        if group["weight_decay"] > 0:
            update += group["weight_decay"] * parameter
        rate = group["lr"]
        if group["t_total"] != -1:
            rate *= SCHEDULES[group["schedule"]](state["step"] / group["t_total"], group["warmup"])
        parameter.add_(update, alpha=-rate)
        state["step"] += 1
