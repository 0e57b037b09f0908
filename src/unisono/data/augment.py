"""Augmentation of whole batches on the device: crop, flip, normalise, erase. The draws come from the host as numbers."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from unisono.data.base import Indices
from unisono.data.order import sample_uniforms
from unisono.recipe.schema import AugmentRecipe

# Columns of `sample_uniforms`; each draw has a column of its own, so that switching one off changes no other.
_CROP_Y, _CROP_X, _FLIP, _ERASE, _ERASE_AREA, _ERASE_RATIO, _ERASE_Y, _ERASE_X = range(8)
COLUMNS = 8


class DeviceAugment:
    """What a recipe does to uint8 images on the device. Geometry first, in uint8; then floats; then erasing."""

    def __init__(
        self, recipe: AugmentRecipe, *, channels: int, seed: int, device: torch.device, channels_last: bool
    ) -> None:
        self._recipe = recipe
        self._seed = seed
        self._device = device
        self.channels_last = channels_last
        """Whether images leave in NHWC memory."""
        mean = torch.tensor(recipe.mean if len(recipe.mean) == channels else recipe.mean * channels)
        std = torch.tensor(recipe.std if len(recipe.std) == channels else recipe.std * channels)
        self._scale = (1 / (255 * std)).to(device)
        self._shift = (mean / std).to(device)
        self._tiles: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def is_plain(self) -> bool:
        """True when training images are only normalised."""
        recipe = self._recipe
        return recipe.crop_padding == 0 and recipe.horizontal_flip == 0 and recipe.random_erasing == 0

    def normalise(self, images: Tensor) -> Tensor:
        """uint8 [B, C, H, W] -> float32 in the memory layout asked for, (x / 255 - mean) / std."""
        batch, channels, height, width = images.shape
        if not self.channels_last:
            planes = images.contiguous().to(torch.float32)
            return planes.mul_(self._scale.view(1, -1, 1, 1)).sub_(self._shift.view(1, -1, 1, 1))
        # One channel after the other in the innermost dimension would make loops of length 3; a whole line does not.
        lines = images.contiguous(memory_format=torch.channels_last).permute(0, 2, 3, 1)
        scale, shift = self._line(width)
        floats = lines.reshape(batch * height, width * channels).to(torch.float32).mul_(scale).sub_(shift)
        return floats.view(batch, height, width, channels).permute(0, 3, 1, 2)

    def _line(self, width: int) -> tuple[Tensor, Tensor]:
        """Scale and shift of one NHWC line, [W * C]."""
        if width not in self._tiles:
            self._tiles[width] = (self._scale.repeat(width), self._shift.repeat(width))
        return self._tiles[width]

    def train(self, images: Tensor, indices: Indices, epoch: int, *, move: bool) -> Tensor:
        """uint8 [B, C, H, W] -> augmented float32.

        Args:
            move: crop and flip too; False where the loader has done so.
        """
        moves = move and bool(self._recipe.crop_padding or self._recipe.horizontal_flip)
        if not moves and not self._recipe.random_erasing:
            return self.normalise(images)
        draws = sample_uniforms(self._seed, epoch, indices, COLUMNS)
        if moves:
            images = crop_and_flip(images, self._recipe, draws, self._device)
        ready = self.normalise(images)
        return erase(ready, self._recipe, draws) if self._recipe.random_erasing else ready


def crop_and_flip(images: Tensor, recipe: AugmentRecipe, draws: NDArray[np.float64], device: torch.device) -> Tensor:
    """A window of the zero-padded image for each sample, mirrored where its draw says so; one gather for the batch."""
    batch, channels, height, width = images.shape
    padding = recipe.crop_padding
    rows = (draws[:, _CROP_Y] * (2 * padding + 1)).astype(np.int64)[:, None] + np.arange(height)
    columns = (draws[:, _CROP_X] * (2 * padding + 1)).astype(np.int64)[:, None] + np.arange(width)
    mirrored = draws[:, _FLIP] < recipe.horizontal_flip
    columns[mirrored] = columns[mirrored, ::-1]
    padded = F.pad(images, (padding,) * 4) if padding else images
    sample = torch.arange(batch, device=device)[:, None, None, None]
    channel = torch.arange(channels, device=device)[None, :, None, None]
    at_rows = torch.from_numpy(rows).to(device)[:, None, :, None]
    at_columns = torch.from_numpy(np.ascontiguousarray(columns)).to(device)[:, None, None, :]
    return padded[sample, channel, at_rows, at_columns]


def crop_and_flip_on_host(
    images: NDArray[np.uint8],
    indices: Indices,
    recipe: AugmentRecipe,
    draws: NDArray[np.float64],
    out: NDArray[np.uint8],
) -> None:
    """As `crop_and_flip`, image by image from a set in host memory: there a slice costs less than an indexed element.

    Args:
        images: the whole set, seen as [N, H, W, C].
        out: zeros, seen as [B, H, W, C]; either may be a view of NCHW memory.
    """
    padding, (height, width) = recipe.crop_padding, images.shape[1:3]
    downs = ((draws[:, _CROP_Y] * (2 * padding + 1)).astype(np.int64) - padding).tolist()
    rights = ((draws[:, _CROP_X] * (2 * padding + 1)).astype(np.int64) - padding).tolist()
    mirrored = (draws[:, _FLIP] < recipe.horizontal_flip).tolist()
    for place, (index, down, right, mirror) in enumerate(zip(indices.tolist(), downs, rights, mirrored, strict=True)):
        target = out[place, :, ::-1] if mirror else out[place]
        top, left = max(0, down), max(0, right)
        tall, wide = max(0, height - abs(down)), max(0, width - abs(right))
        window = images[index, top : top + tall, left : left + wide]
        target[top - down : top - down + tall, left - right : left - right + wide] = window


def erase(images: Tensor, recipe: AugmentRecipe, draws: NDArray[np.float64]) -> Tensor:
    """Set a rectangle of 2 to 33 % of the area to zero (the mean) in the samples that draw it (Zhong et al. 2017)."""
    height, width = images.shape[-2:]
    for sample in np.flatnonzero(draws[:, _ERASE] < recipe.random_erasing):
        area = (0.02 + draws[sample, _ERASE_AREA] * 0.31) * height * width
        ratio = np.exp(np.log(0.3) + draws[sample, _ERASE_RATIO] * (np.log(3.3) - np.log(0.3)))
        tall, wide = min(height, round((area * ratio) ** 0.5)), min(width, round((area / ratio) ** 0.5))
        top, left = (
            int(draws[sample, _ERASE_Y] * (height - tall + 1)),
            int(draws[sample, _ERASE_X] * (width - wide + 1)),
        )
        images[sample, :, top : top + tall, left : left + wide] = 0
    return images
