"""An exponential moving average of the weights: followed at every update, lent to the model for evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


class Ema:
    """average <- decay x average + (1 - decay) x weight, after every update, equal on all ranks."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._decay = decay
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self._names = [name for name, _ in named]
        self._weights = [p for _, p in named]
        self._averages = [p.detach().clone() for p in self._weights]

    @torch.no_grad()
    def update(self) -> None:
        """Follow the weights by one update."""
        torch._foreach_lerp_(self._averages, [p.detach() for p in self._weights], 1 - self._decay)

    @contextmanager
    def in_place_of_weights(self) -> Iterator[None]:
        """The model computes with the averages inside a `with`; no copies are made."""
        for weight, average in zip(self._weights, self._averages, strict=True):
            weight.data, average.data = average.data, weight.data
        try:
            yield
        finally:
            for weight, average in zip(self._weights, self._averages, strict=True):
                weight.data, average.data = average.data, weight.data

    def state(self) -> dict[str, Any]:
        """For a checkpoint: {"weights": {name: tensor}}."""
        return {"weights": dict(zip(self._names, self._averages, strict=True))}

    def load_state(self, state: dict[str, Any]) -> None:
        """From a checkpoint."""
        for name, average in zip(self._names, self._averages, strict=True):
            average.copy_(state["weights"][name])
