"""What the fused optimizers share: gradients stay allocated, parameters must stay on the NPU, clipping over all of them."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim.optimizer import ParamsT, required

__all__ = ["FusedRules", "NpuFusedOptimizerBase", "ParamsT", "required"]


class FusedRules(torch.optim.Optimizer):
    """Mixed into torch's optimizers. The real ones join parameters into one block, and break when they are moved."""

    is_npu_fused_optimizer = True
    _watching = False

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Zero the gradients; by default they keep their memory, as joined ones must."""
        super().zero_grad(set_to_none=set_to_none)

    def clip_grad_norm_fused_(self, max_norm: float, norm_type: float = 2) -> torch.Tensor:
        """Clip the norm of all gradients of this optimizer taken as one vector; returns the norm before.

        Raises:
            RuntimeError: a parameter that is not on an NPU.
        """
        self._require_npu()
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        return torch.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type, foreach=False)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters; each step then checks that all are still on an NPU."""
        super().add_param_group(param_group)
        if not self._watching:
            self._watching = True
            self.register_step_pre_hook(lambda optimizer, *_: optimizer._require_npu())

    def _require_npu(self) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.device.type != "npu":
                    raise RuntimeError(
                        f"NPU fused optimizers need parameters on an NPU, and one is on {parameter.device}: "
                        "move the model before making the optimizer, and do not move it afterwards"
                    )


class NpuFusedOptimizerBase(FusedRules):
    """Base of optimizers written for torch_npu."""

    def __init__(self, params: ParamsT, default: dict[str, Any]) -> None:
        super().__init__(params, default)


def require_at_least_zero(**values: float) -> None:
    """Refuse negative settings, in torch's words."""
    for name, value in values.items():
        if value < 0.0:
            raise ValueError(f"Invalid {name} value: {value}")
