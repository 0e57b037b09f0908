"""Large sets are decoded by workers and travel as uint8, one tensor a replica and step; floats are made on the device."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from unisono.data.augment import DeviceAugment
from unisono.data.base import ArraySource, Batch, Indices, Source
from unisono.data.maker import EVALUATION, Made, Maker, Task, begin_worker
from unisono.data.order import epoch_order, eval_bounds, replica_indices
from unisono.errors import ExitCode, UserError
from unisono.recipe.schema import Recipe

log = logging.getLogger(__name__)


class _Tasks:
    """The tasks of a stretch of steps, made one by one while workers run."""

    def __init__(
        self, recipe: Recipe, images: int, replicas: range, steps_per_epoch: int, first: int, last: int
    ) -> None:
        self._arguments = (recipe, images, replicas, steps_per_epoch, first, last)

    def __len__(self) -> int:
        _, _, replicas, _, first, last = self._arguments
        return (last - first) * len(replicas)

    def __iter__(self) -> Iterator[Task]:
        recipe, images, replicas, steps_per_epoch, first, last = self._arguments
        known, order = -1, epoch_order(recipe.seed, 0, 1)
        for step in range(first, last):
            epoch, in_epoch = divmod(step, steps_per_epoch)
            if epoch != known:
                known, order = epoch, epoch_order(recipe.seed, epoch, images)
            for replica in replicas:
                yield Task(
                    epoch, replica_indices(order, in_epoch, replica, recipe.replicas, recipe.per_replica_batch_size)
                )


class _Replaced:
    """The count of unreadable images on this rank; each file is told once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._told: set[int] = set()
        self.count = 0

    def add(self, replaced: Iterable[tuple[int, str]]) -> None:
        for index, why in replaced:
            self.count += 1
            if index not in self._told:
                self._told.add(index)
                where = f"image {index}" if isinstance(self._source, ArraySource) else self._source.path(index)
                log.warning("another image of its class stands in for %s: %s", where, why)


class StreamedTrain:
    """Training batches of one rank through loader processes."""

    def __init__(
        self,
        recipe: Recipe,
        source: Source,
        class_names: tuple[str, ...],
        *,
        replicas: range,
        rank: int,
        steps_per_epoch: int,
        augment: DeviceAugment,
        device: torch.device,
        loading: dict[str, Any],
    ) -> None:
        self._recipe, self._source, self._replicas = recipe, source, replicas
        self._steps_per_epoch = steps_per_epoch
        self._augment, self._device, self._loading = augment, device, loading
        self._maker = Maker(recipe, source, class_names, rank)
        # What a random resized crop has cropped and flipped, and whole batches, are not moved again on the device.
        self._move_on_device = not self._maker.takes_whole_batches and not recipe.augment.random_resized_crop
        self._replaced = _Replaced(source)
        self._images_made = 0

    @property
    def bad_images(self) -> int:
        """Unreadable images replaced so far."""
        return self._replaced.count

    def steps(self, first_step: int, last_step: int) -> Iterator[list[Batch]]:
        """The batches of each step, decoded ahead by workers."""
        tasks = _Tasks(self._recipe, len(self._source), self._replicas, self._steps_per_epoch, first_step, last_step)
        step: list[Batch] = []
        for made, task in zip(made_by(build_loader(self._maker, tasks, self._loading)), tasks, strict=True):
            step.append(self._batch(made, task))
            if len(step) == len(self._replicas):
                yield step
                step = []

    def _batch(self, made: Made, task: Task) -> Batch:
        images = images_of(made)
        self._replaced.add(made.replaced)
        self._images_made += len(task.indices)
        self._refuse_too_many()
        on_device = images.to(self._device, non_blocking=True)
        return Batch(
            self._augment.train(on_device, task.indices, task.epoch, move=self._move_on_device),
            labels_of(self._source, task.indices, self._device),
            task.indices,
        )

    def _refuse_too_many(self) -> None:
        """Judge the share of bad images once as many are seen as this rank's part of the set may hold."""
        limit, bad = self._recipe.data.bad_image_limit, self.bad_images
        mine = len(self._source) * len(self._replicas) / self._recipe.replicas
        if bad > max(1, limit * self._images_made, limit * mine):
            raise UserError(
                "D111",
                f"{bad} of {self._images_made} images could not be read",
                f"data.bad_image_limit is {limit:g}",
                "`unisono data check DIR` lists them",
            )


class StreamedEval:
    """Validation batches of one rank through loader processes, which stay from one evaluation to the next."""

    def __init__(
        self,
        recipe: Recipe,
        source: Source,
        class_names: tuple[str, ...],
        *,
        rank: int,
        world_size: int,
        augment: DeviceAugment,
        device: torch.device,
        loading: dict[str, Any],
    ) -> None:
        bounds = eval_bounds(len(source), recipe.evaluate.per_device_batch_size, rank, world_size)
        self._tasks = [Task(EVALUATION, np.arange(first, end)) for first, end in bounds]
        self._source, self._augment, self._device = source, augment, device
        self._maker = Maker(recipe, source, class_names, rank)
        self._loading = loading
        self._loader: DataLoader[Made] | None = None
        self._replaced = _Replaced(source)

    @property
    def bad_images(self) -> int:
        """Unreadable images replaced so far."""
        return self._replaced.count

    def batches(self) -> Iterator[Batch]:
        """Every image of this rank's block once, in order."""
        if self._loader is None:
            keep = {"persistent_workers": True} if self._loading.get("num_workers") else {}
            self._loader = build_loader(self._maker, self._tasks, self._loading | keep)
        for made, task in zip(made_by(self._loader), self._tasks, strict=True):
            images = images_of(made).to(self._device, non_blocking=True)
            self._replaced.add(made.replaced)
            labels = labels_of(self._source, task.indices, self._device)
            yield Batch(self._augment.normalise(images), labels, task.indices)

    def close(self) -> None:
        """End the loader processes."""
        self._loader = None


def build_loader(maker: Maker, tasks: Any, loading: dict[str, Any]) -> DataLoader[Made]:
    """torch's loader over tasks. Its own generator, so that starting one draws nothing from the global one."""
    start: dict[str, Any] = {"worker_init_fn": begin_worker} if loading.get("num_workers") else {}
    generator = torch.Generator().manual_seed(0)
    with warnings.catch_warnings():
        # `open_batches` has said so in our words, with the option that changes it.
        warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)
        return DataLoader(maker, sampler=tasks, batch_size=None, generator=generator, **loading, **start)


def made_by(loader: DataLoader[Made]) -> Iterator[Made]:
    """What the workers make, in order.

    Raises:
        UserError: D113 a worker died, with the reason that its signal tells.
    """
    try:
        yield from loader
    except RuntimeError as error:
        text = f"{error} {error.__cause__ or ''}"
        if "DataLoader worker" not in text:
            raise
        raise worker_died(text) from error


def worker_died(text: str) -> UserError:
    """torch's words on a dead worker as a coded error."""
    if "Bus error" in text or "shared memory" in text:
        why, fix = "/dev/shm is full", "start the container with --shm-size=8g, or use fewer --workers"
    elif "Killed" in text:
        why, fix = (
            "it was killed, as the kernel does when memory is short",
            "use fewer --workers, or give the machine more memory",
        )
    else:
        why, fix = text.strip(), "run with --workers 0 to see its own error"
    return UserError("D113", "a loader process died", why, fix, exit_code=ExitCode.CRASHED)


def labels_of(source: Source, indices: Indices, device: torch.device) -> Tensor:
    """int64 [B] on the device."""
    return torch.from_numpy(source.labels[indices]).to(device, non_blocking=True)


def images_of(made: Made) -> Tensor:
    """The images of a task, or its error, raised here with its fields whole."""
    if made.error is not None:
        raise UserError(*made.error)
    assert made.images is not None
    return made.images
