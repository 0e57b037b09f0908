"""Small sets live on the device as uint8; a batch is a gather there, and augmentation runs on whole batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unisono.data.augment import DeviceAugment
from unisono.data.base import ArraySource, Batch, Indices
from unisono.data.order import epoch_order, eval_bounds, replica_indices
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
        self._images = _to_device(source.images, device)
        self._labels = torch.from_numpy(source.labels).to(device)
        self._ready = augment.is_plain and source.images.nbytes * 4 <= _READY_LIMIT_BYTES
        if self._ready:
            self._images = augment.normalise(self._images)
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
        at = torch.from_numpy(indices).to(self._device)
        images = self._images.index_select(0, at)
        if not self._ready:
            images = self._augment.train(images, indices, epoch, move=True)
        return Batch(images, self._labels.index_select(0, at), indices)


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


def _to_device(images: NDArray[np.uint8], device: torch.device) -> Tensor:
    array = np.ascontiguousarray(images)
    return torch.from_numpy(array if array.flags.writeable else array.copy()).to(device)
