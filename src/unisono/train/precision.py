"""How numbers are stored while training: autocast for the forward pass, a loss scale for fp16."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from unisono.recipe.schema import PrecisionRecipe

_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Precision:
    """The type of matrix products and activations on one kind of device."""

    def __init__(self, recipe: PrecisionRecipe, device_type: str) -> None:
        self.name = recipe.compute
        self._device_type = device_type

    def autocast(self) -> AbstractContextManager[Any]:
        """Around a forward pass."""
        if self.name == "fp32":
            return nullcontext()
        return torch.autocast(self._device_type, dtype=_TYPES[self.name])


class LossScaler:
    """fp16's loss scale: fixed, or halved at overflow and doubled after `loss_scale_growth_interval` good steps.

    Its state is two numbers, equal on all ranks because overflow is judged on the reduced gradients. Source of the
    dynamic rule: Micikevicius et al., "Mixed precision training", 2018.
    """

    def __init__(self, recipe: PrecisionRecipe) -> None:
        self.enabled = recipe.compute == "fp16"
        self._dynamic = self.enabled and recipe.loss_scale == "dynamic"
        self._interval = recipe.loss_scale_growth_interval
        self._good_steps = 0
        self.scale = 1.0
        if self.enabled:
            self.scale = recipe.initial_loss_scale if recipe.loss_scale == "dynamic" else recipe.loss_scale

    def update(self, *, overflow: bool) -> None:
        """Learn from one step."""
        if not self._dynamic:
            return
        if overflow:
            self.scale, self._good_steps = self.scale / 2, 0
            return
        self._good_steps += 1
        if self._good_steps == self._interval:
            self.scale, self._good_steps = self.scale * 2, 0

    def state(self) -> dict[str, float | int]:
        """For a checkpoint."""
        return {"scale": self.scale, "good_steps": self._good_steps}

    def load_state(self, state: dict[str, Any]) -> None:
        """From a checkpoint."""
        self.scale, self._good_steps = float(state["scale"]), int(state["good_steps"])
