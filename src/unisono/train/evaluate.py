"""Counting the validation set: every image once, in whole numbers, on any number of ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unisono.data import Batches
from unisono.distributed.collectives import gather_objects, sum_over_ranks


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What counting the validation set gave."""

    images: int
    correct_top1: int
    correct_top5: int
    loss: float
    """Mean cross entropy over all images."""

    @property
    def top1_accuracy(self) -> float:
        """Share of images whose class has the greatest logit, in [0, 1]."""
        return self.correct_top1 / self.images

    @property
    def top5_accuracy(self) -> float:
        """Share of images whose class is among the five greatest logits, in [0, 1]."""
        return self.correct_top5 / self.images


@torch.no_grad()
def evaluate(
    model: nn.Module, batches: Batches, expected_images: int, device: torch.device, go_on: Callable[[], bool]
) -> Evaluation | None:
    """Count this rank's share and add the ranks up. Collective.

    The validation set is cut into batches before it is shared out, so a batch holds the same images, and its logits
    the same bits, on any number of ranks. Counts stay on the device until the end.

    Args:
        expected_images: size of the whole set.
        go_on: asked before each batch; a rank that answers no counts no further, and then all ranks get None.
    """
    was_training = model.training
    model.eval()
    counts = torch.zeros(3, dtype=torch.int64, device=device)
    losses: list[Tensor] = []
    try:
        for batch in batches.eval_batches():
            if not go_on():
                break
            logits = model(batch.images).float()
            losses.append(F.cross_entropy(logits, batch.labels, reduction="sum"))
            counts += _count(logits, batch.labels)
    finally:
        model.train(was_training)
    top1, top5, images = sum_over_ranks(counts.tolist(), device)
    if images != expected_images:
        return None
    # Sums a batch are added in the order of batches, whichever rank counted them.
    everyone = gather_objects([float(loss) for loss in losses])
    return Evaluation(images, top1, top5, sum(loss for rank in everyone for loss in rank) / images)


def _count(logits: Tensor, labels: Tensor) -> Tensor:
    best = logits.topk(min(5, logits.shape[1]), dim=1).indices
    hits = best == labels[:, None]
    return torch.stack([hits[:, 0].sum(), hits.any(dim=1).sum(), torch.tensor(len(labels), device=logits.device)])
