"""LAMB (You et al. 2019, version 3 of the paper: without bias correction)."""

from __future__ import annotations

from typing import Any

import torch

from torch_npu.optim.npu_fused_optim_base import NpuFusedOptimizerBase, ParamsT, require_at_least_zero

_LARGEST_WEIGHT_NORM = 10


class NpuFusedLamb(NpuFusedOptimizerBase):
    """LAMB by torch_npu's signature. adam=True sets every trust ratio to 1."""

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0,
        adam: bool = False,
        use_global_grad_norm: bool = False,
    ) -> None:
        require_at_least_zero(lr=lr, eps=eps, weight_decay=weight_decay)
        for position, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {position}: {beta}")
        self.adam = adam
        self.use_global_grad_norm = use_global_grad_norm
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One update."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        divisor = self._gradient_divisor() if self.use_global_grad_norm else None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group, divisor)
        return loss

    def _gradient_divisor(self) -> torch.Tensor:
        """The norm of all gradients, and 1 at least."""
        gradients = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        return torch.nn.utils.get_total_norm(gradients, foreach=False).clamp(min=1.0)

    def _update(self, parameter: torch.Tensor, group: dict[str, Any], divisor: torch.Tensor | None) -> None:
        gradient = parameter.grad
        assert gradient is not None
        if divisor is not None:
            gradient = gradient / divisor
        state = self.state[parameter]
        if not state:
            state["step"] = 0
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        beta1, beta2 = group["betas"]
        state["exp_avg"].mul_(beta1).add_(gradient, alpha=1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        direction = state["exp_avg"] / state["exp_avg_sq"].sqrt().add(group["eps"])
        if group["weight_decay"] != 0:
            direction.add_(parameter, alpha=group["weight_decay"])
        weight_norm = parameter.pow(2).sum().sqrt().clamp(0, _LARGEST_WEIGHT_NORM)
        direction_norm = direction.pow(2).sum().sqrt()
        usable = (weight_norm > 0) & (direction_norm > 0)
        ratio = torch.where(usable, weight_norm / direction_norm, torch.ones_like(weight_norm))
        if self.adam:
            ratio = torch.ones_like(ratio)
        parameter.add_(direction * ratio, alpha=-group["lr"])
