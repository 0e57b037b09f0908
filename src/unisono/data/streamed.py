"""Large sets are decoded by workers and travel as uint8, one tensor a replica and step; floats are made on the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, get_worker_info

from unisono.data.augment import COLUMNS, DeviceAugment, crop_and_flip
from unisono.data.base import ArraySource, Batch, Indices, Source
from unisono.data.decode import augment_train, load_eval, load_train, resize_shorter_and_crop, to_array
from unisono.data.order import epoch_order, eval_bounds, replica_indices, sample_uniforms
from unisono.errors import UserError
from unisono.recipe.schema import Recipe

_EVALUATION = -1


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker makes in one go: the images of one replica's batch. Carries its epoch, so that no worker is stale."""

    epoch: int
    """-1 for validation images."""
    indices: Indices


@dataclass(frozen=True, slots=True)
class Made:
    """What came of a task; an error travels as data, since exceptions lose their fields on the way between processes."""

    images: Tensor | None
    """uint8 [n, C, H, W]"""
    bad: int
    error: tuple[str, str, str, str] | None = None


class _Maker(Dataset[Made]):
    """Lives in the workers: decodes, crops and stacks."""

    def __init__(self, recipe: Recipe, source: Source, class_names: tuple[str, ...], rank: int) -> None:
        self._recipe = recipe
        self._source = source
        self._class_names = class_names
        self._rank = rank

    def __getitem__(self, task: Task) -> Made:
        try:
            if self.takes_whole_batches:
                return Made(self._whole_batch(task), 0)
            bad, images = 0, []
            for index in task.indices:
                image, replaced = self._one(int(index), task.epoch)
                images.append(image)
                bad += replaced
            return Made(torch.from_numpy(np.stack(images)), bad)
        except UserError as error:
            return Made(None, 0, (error.code, error.what, error.why, error.fix))

    @property
    def takes_whole_batches(self) -> bool:
        """Arrays of the right size are cropped and flipped in whole batches here, as the device does it for resident sets."""
        augment = self._recipe.augment
        whole = isinstance(self._source, ArraySource) and self._source.images.shape[-1] == self._recipe.data.image_size
        return whole and augment.auto_augment is None and not augment.random_resized_crop

    def _whole_batch(self, task: Task) -> Tensor:
        assert isinstance(self._source, ArraySource)
        images = torch.from_numpy(self._source.images[task.indices])
        augment = self._recipe.augment
        if task.epoch == _EVALUATION or not (augment.crop_padding or augment.horizontal_flip):
            return images
        draws = sample_uniforms(self._recipe.seed, task.epoch, task.indices, COLUMNS)
        return crop_and_flip(images, augment, draws, torch.device("cpu"))

    def _one(self, index: int, epoch: int) -> tuple[np.ndarray, int]:
        """One image, and 1 when it had to be replaced by the next readable one of its class."""
        labels = self._source.labels
        same_class = (
            np.flatnonzero(labels == labels[index]) if self._recipe.data.on_bad_image == "skip" else np.array([index])
        )
        start = int(np.searchsorted(same_class, index))
        for offset in range(len(same_class)):
            candidate = int(same_class[(start + offset) % len(same_class)])
            try:
                return self._read(candidate, epoch, draw_as=index), int(offset > 0)
            except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
                if self._recipe.data.on_bad_image == "fail":
                    raise self._bad_image(index, error) from None
        raise self._bad_image(index, OSError("no image of this class can be read"))

    def _read(self, index: int, epoch: int, draw_as: int) -> np.ndarray:
        recipe, source = self._recipe, self._source
        size = recipe.data.image_size
        if isinstance(source, ArraySource):
            image = Image.fromarray(
                np.ascontiguousarray(
                    np.broadcast_to(source.images[index], (3, *source.images.shape[2:])).transpose(1, 2, 0)
                )
            )
            if epoch == _EVALUATION:
                return self._channels(to_array(resize_shorter_and_crop(image, recipe.augment.eval_resize, size)))
            return self._channels(
                augment_train(image, recipe.augment, size, seed=recipe.seed, epoch=epoch, index=draw_as)
            )
        if epoch == _EVALUATION:
            return load_eval(source.path(index), recipe.augment, size)
        return load_train(source.path(index), recipe.augment, size, seed=recipe.seed, epoch=epoch, index=draw_as)

    def _channels(self, image: np.ndarray) -> np.ndarray:
        assert isinstance(self._source, ArraySource)
        return image[: self._source.images.shape[1]]

    def _bad_image(self, index: int, error: Exception) -> UserError:
        where = str(self._source.path(index)) if not isinstance(self._source, ArraySource) else f"image {index}"
        worker = get_worker_info()
        name = self._class_names[int(self._source.labels[index])]
        return UserError(
            "D110",
            f"cannot read {where} (class {name}, rank {self._rank}, worker {worker.id if worker else 'none'})",
            f"{type(error).__name__}: {error}",
            "mend or remove the file (`unisono data check DIR` lists all), or --set data.on_bad_image=skip",
        )


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
        self._maker = _Maker(recipe, source, class_names, rank)
        # What a random resized crop has cropped and flipped, and whole batches, are not moved again on the device.
        self._move_on_device = not self._maker.takes_whole_batches and not recipe.augment.random_resized_crop
        self.bad_images = 0
        self._images_made = 0

    def steps(self, first_step: int, last_step: int) -> Iterator[list[Batch]]:
        """The batches of each step, decoded ahead by workers."""
        tasks = _Tasks(self._recipe, len(self._source), self._replicas, self._steps_per_epoch, first_step, last_step)
        loader = DataLoader(self._maker, sampler=tasks, batch_size=None, **self._loading)
        step: list[Batch] = []
        for made, task in zip(loader, tasks, strict=True):
            step.append(self._batch(made, task))
            if len(step) == len(self._replicas):
                yield step
                step = []

    def _batch(self, made: Made, task: Task) -> Batch:
        images = images_of(made)
        self.bad_images += made.bad
        self._images_made += len(task.indices)
        limit = self._recipe.data.bad_image_limit
        if self.bad_images > max(1, limit * self._images_made) and self.bad_images > limit * len(self._source):
            raise UserError(
                "D111",
                f"{self.bad_images} of {self._images_made} images could not be read",
                f"data.bad_image_limit is {limit:g}",
                "`unisono data check DIR` lists them",
            )
        on_device = images.to(self._device, non_blocking=True)
        labels = torch.from_numpy(self._source.labels[task.indices]).to(self._device, non_blocking=True)
        return Batch(
            self._augment.train(on_device, task.indices, task.epoch, move=self._move_on_device), labels, task.indices
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
        self._tasks = [Task(_EVALUATION, np.arange(first, end)) for first, end in bounds]
        self._source, self._augment, self._device = source, augment, device
        self._maker = _Maker(recipe, source, class_names, rank)
        self._loading = loading
        self._loader: DataLoader[Made] | None = None
        self.bad_images = 0

    def batches(self) -> Iterator[Batch]:
        """Every image of this rank's block once, in order."""
        if self._loader is None:
            keep = {"persistent_workers": True} if self._loading.get("num_workers") else {}
            self._loader = DataLoader(self._maker, sampler=self._tasks, batch_size=None, **self._loading, **keep)  # type: ignore[arg-type]  # tasks for integers
        for made, task in zip(self._loader, self._tasks, strict=True):
            images = images_of(made).to(self._device, non_blocking=True)
            self.bad_images += made.bad
            labels = torch.from_numpy(self._source.labels[task.indices]).to(self._device, non_blocking=True)
            yield Batch(self._augment.normalise(images), labels, task.indices)

    def close(self) -> None:
        """End the loader processes."""
        self._loader = None


def images_of(made: Made) -> Tensor:
    """The images of a task, or its error, raised here with its fields whole."""
    if made.error is not None:
        raise UserError(*made.error)
    assert made.images is not None
    return made.images
