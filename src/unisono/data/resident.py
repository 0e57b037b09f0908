"""Small sets live on the device as uint8; a batch is a gather there, and augmentation runs on whole batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unisono.data.augment import COLUMNS, DeviceAugment, crop_and_flip_on_host
from unisono.data.base import ArraySource, Batch, Indices
from unisono.data.order import epoch_order, eval_bounds, replica_indices, sample_uniforms
from unisono.recipe.schema import Recipe

# A set whose floats fit in this is normalised once, where nothing else is done to its images.
_READY_LIMIT_BYTES = 512 * 2**20


class ResidentTrain:
    """Training batches of one rank from a set in the device's memory."""

    def __init__(
        self,
        recipe: Recipe,
        source: ArraySource,
        *,
        replicas: range,
        steps_per_epoch: int,
        augment: DeviceAugment,
        device: torch.device,
    ) -> None:
        self._recipe = recipe
        self._replicas = replicas
        self._steps_per_epoch = steps_per_epoch
        self._augment = augment
        self._device = device
        self._labels = source.labels
        self._source = source.images
        self._ready = augment.is_plain and source.images.nbytes * 4 <= _READY_LIMIT_BYTES
        # Where the device is the host, the set is read where it lies: no second copy a rank.
        self._on_host = device.type == "cpu" and not self._ready
        if self._ready:
            self._images = _rows(augment.normalise(_to_device(source.images, device)), augment.channels_last)
        elif not self._on_host:
            self._images = _to_device(source.images, device)
        self._epoch, self._order = -1, epoch_order(recipe.seed, 0, 1)

    def steps(self, first_step: int, last_step: int) -> Iterator[list[Batch]]:
        """The batches of each step, made when they are asked for."""
        recipe = self._recipe
        for step in range(first_step, last_step):
            epoch, in_epoch = divmod(step, self._steps_per_epoch)
            if epoch != self._epoch:
                self._epoch, self._order = epoch, epoch_order(recipe.seed, epoch, len(self._labels))
            yield [
                self._batch(
                    replica_indices(self._order, in_epoch, replica, recipe.replicas, recipe.per_replica_batch_size),
                    epoch,
                )
                for replica in self._replicas
            ]

    def _batch(self, indices: Indices, epoch: int) -> Batch:
        # Each replica's images have memory of their own: kernels may round otherwise when memory is aligned otherwise,
        # and a slice of a larger gather is aligned by its place in it.
        labels = torch.from_numpy(self._labels[indices]).to(self._device)
        if self._ready:
            at = torch.from_numpy(indices).to(self._device)
            images = self._images.index_select(0, at)
            return Batch(images.permute(0, 3, 1, 2) if self._augment.channels_last else images, labels, indices)
        if self._on_host:
            moved = move_on_host(self._source, indices, self._recipe, epoch, channels_last=self._augment.channels_last)
            return Batch(self._augment.train(moved, indices, epoch, move=False), labels, indices)
        images = self._images.index_select(0, torch.from_numpy(indices).to(self._device))
        return Batch(self._augment.train(images, indices, epoch, move=True), labels, indices)


class ResidentEval:
    """Validation batches of one rank from a set in the device's memory."""

    def __init__(
        self,
        source: ArraySource,
        *,
        batch_size: int,
        rank: int,
        world_size: int,
        augment: DeviceAugment,
        device: torch.device,
    ) -> None:
        self._bounds = eval_bounds(len(source), batch_size, rank, world_size)
        first, end = (self._bounds[0][0], self._bounds[-1][1]) if self._bounds else (0, 0)
        self._first = first
        self._images = _to_device(source.images[first:end], device)
        self._labels = torch.from_numpy(source.labels[first:end].copy()).to(device)
        self._augment = augment

    def batches(self) -> Iterator[Batch]:
        """Every image of this rank's block once, in order."""
        for first, end in self._bounds:
            part = slice(first - self._first, end - self._first)
            yield Batch(self._augment.normalise(self._images[part]), self._labels[part], np.arange(first, end))


def move_on_host(
    images: NDArray[np.uint8], indices: Indices, recipe: Recipe, epoch: int, *, channels_last: bool
) -> Tensor:
    """Some images of a set in host memory, cropped and flipped: uint8 [B, C, H, W] in NHWC or NCHW memory."""
    batch, (channels, height, width) = len(indices), images.shape[1:]
    augment = recipe.augment
    if channels_last:
        seen = np.zeros((batch, height, width, channels), np.uint8)
    else:
        seen = np.zeros((batch, channels, height, width), np.uint8).transpose(0, 2, 3, 1)
    if augment.crop_padding or augment.horizontal_flip:
        draws = sample_uniforms(recipe.seed, epoch, indices, COLUMNS)
        crop_and_flip_on_host(images.transpose(0, 2, 3, 1), indices, augment, draws, seen)
    else:
        seen[:] = images[indices].transpose(0, 2, 3, 1)
    return torch.from_numpy(seen).permute(0, 3, 1, 2)


def _rows(images: Tensor, channels_last: bool) -> Tensor:
    """Contiguous images, so that a gather keeps the layout: [N, H, W, C] or [N, C, H, W]."""
    return (images.permute(0, 2, 3, 1) if channels_last else images).contiguous()


def _to_device(images: NDArray[np.uint8], device: torch.device) -> Tensor:
    array = np.ascontiguousarray(images)
    return torch.from_numpy(array if array.flags.writeable else array.copy()).to(device)
