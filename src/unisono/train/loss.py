"""Cross entropy over class indices or soft targets: the mean over one replica's batch."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional as F

from unisono.recipe.schema import LossRecipe


def build_loss(recipe: LossRecipe) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss of logits [B, classes] and targets: int64 [B], or soft float32 [B, classes] that hold their smoothing."""

    def loss(logits: Tensor, targets: Tensor) -> Tensor:
        smoothing = recipe.label_smoothing if targets.dim() == 1 else 0.0
        return F.cross_entropy(logits, targets, label_smoothing=smoothing)

    return loss
