"""Mixup and cutmix within one replica's batch: the draws are a function of (seed, step, replica)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from unisono.recipe.schema import AugmentRecipe

_MIXING = 3


def mix_batch(
    images: Tensor,
    labels: Tensor,
    *,
    augment: AugmentRecipe,
    label_smoothing: float,
    num_classes: int,
    seed: int,
    step: int,
    replica: int,
) -> tuple[Tensor, Tensor]:
    """Mix a batch with itself in another order, by mixup, by cutmix, or not at all.

    Args:
        images: float32 [B, C, H, W]; changed in place.
        labels: int64 [B].

    Returns:
        Images, and targets: the labels themselves when the recipe never mixes, else float32 [B, num_classes] with the
        label smoothing in them. Sources: Zhang et al. 2018 (mixup); Yun et al. 2019 (cutmix, whose weight is the
        share of pixels that stay).
    """
    if augment.mixup_probability == 0 and augment.cutmix_probability == 0:
        return images, labels
    generator = np.random.default_rng([seed & 0xFFFFFFFF, seed >> 32, step, replica, _MIXING])
    which, targets = generator.random(), _soft(labels, num_classes, label_smoothing)
    order = torch.from_numpy(generator.permutation(len(labels))).to(images.device)
    if which < augment.mixup_probability:
        kept = generator.beta(augment.mixup_alpha, augment.mixup_alpha)
        images = images.mul(kept).add_(images[order], alpha=1 - kept)
    elif which < augment.mixup_probability + augment.cutmix_probability:
        kept = _paste(images, order, generator.beta(augment.cutmix_alpha, augment.cutmix_alpha), generator)
    else:
        return images, targets
    return images, targets.mul(kept).add_(targets[order], alpha=1 - kept)


def _paste(images: Tensor, order: Tensor, wanted: float, generator: np.random.Generator) -> float:
    """Paste a rectangle of the other image; returns the share of pixels that stay."""
    height, width = images.shape[-2:]
    tall, wide = int(height * (1 - wanted) ** 0.5), int(width * (1 - wanted) ** 0.5)
    y, x = int(generator.integers(height)), int(generator.integers(width))
    top, bottom = max(0, y - tall // 2), min(height, y + tall // 2)
    left, right = max(0, x - wide // 2), min(width, x + wide // 2)
    images[:, :, top:bottom, left:right] = images[order, :, top:bottom, left:right]
    return 1 - (bottom - top) * (right - left) / (height * width)


def _soft(labels: Tensor, num_classes: int, smoothing: float) -> Tensor:
    return F.one_hot(labels, num_classes).to(torch.float32).mul_(1 - smoothing).add_(smoothing / num_classes)
