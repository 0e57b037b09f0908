"""Cross entropy over indices and over soft targets, as a mean over the replica's batch."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from unisono.recipe.schema import LossRecipe
from unisono.train.loss import build_loss

LOGITS = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 4, 2, 2, 1, 3])


def by_hand(targets: torch.Tensor) -> torch.Tensor:
    return -(targets * LOGITS.log_softmax(dim=1)).sum(dim=1).mean()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_indices_are_smoothed_evenly_over_all_classes(smoothing: float) -> None:
    targets = F.one_hot(LABELS, 5) * (1 - smoothing) + smoothing / 5
    torch.testing.assert_close(build_loss(LossRecipe(label_smoothing=smoothing))(LOGITS, LABELS), by_hand(targets))


def test_soft_targets_hold_their_smoothing_and_are_not_smoothed_again() -> None:
    targets = torch.softmax(LOGITS.flip(0), dim=1)
    torch.testing.assert_close(build_loss(LossRecipe(label_smoothing=0.1))(LOGITS, targets), by_hand(targets))


def test_the_loss_is_a_mean_so_equal_replicas_average_to_the_whole_batch() -> None:
    loss = build_loss(LossRecipe())
    halves = [loss(LOGITS[part], LABELS[part]) for part in (slice(0, 3), slice(3, 6))]
    torch.testing.assert_close(sum(halves) / 2, loss(LOGITS, LABELS))
