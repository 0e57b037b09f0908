"""RMSprop as TensorFlow computes it: eps inside the root, averages that begin at one, the rate inside the momentum."""

from __future__ import annotations

from typing import Any

import torch

from torch_npu.optim.npu_fused_optim_base import NpuFusedOptimizerBase, ParamsT, require_at_least_zero


class NpuFusedRMSpropTF(NpuFusedOptimizerBase):
    """The form of timm's RMSpropTF, by torch_npu's signature."""

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-2,
        alpha: float = 0.9,
        eps: float = 1e-10,
        weight_decay: float = 0,
        momentum: float = 0.0,
        centered: bool = False,
        decoupled_decay: bool = False,
        lr_in_momentum: bool = True,
    ) -> None:
        require_at_least_zero(lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum)
        defaults = {
            "lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum, "centered": centered,
            "decoupled_decay": decoupled_decay, "lr_in_momentum": lr_in_momentum,
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
            state["square_avg"] = torch.ones_like(parameter)
            state["momentum_buffer"] = torch.zeros_like(parameter)
            state["grad_avg"] = torch.zeros_like(parameter)
        state["step"] += 1
        share = 1.0 - group["alpha"]
        if group["weight_decay"] != 0:
            if group["decoupled_decay"]:
                parameter.mul_(1.0 - group["lr"] * group["weight_decay"])
            else:
                gradient = gradient.add(parameter, alpha=group["weight_decay"])
        square = state["square_avg"]
        square.add_(gradient.pow(2) - square, alpha=share)
        if group["centered"]:
            state["grad_avg"].add_(gradient - state["grad_avg"], alpha=share)
            root = square.addcmul(state["grad_avg"], state["grad_avg"], value=-1).add(group["eps"]).sqrt_()
        else:
            root = square.add(group["eps"]).sqrt_()
        if group["momentum"] == 0:
            parameter.addcdiv_(gradient, root, value=-group["lr"])
            return
        buffer = state["momentum_buffer"].mul_(group["momentum"])
        if group["lr_in_momentum"]:
            parameter.sub_(buffer.addcdiv_(gradient, root, value=group["lr"]))
        else:
            parameter.add_(buffer.addcdiv_(gradient, root), alpha=-group["lr"])
