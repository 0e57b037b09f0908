"""One rank's batches: resident or streamed, each split by itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from unisono.data.augment import DeviceAugment
from unisono.data.base import ArraySource, Batch, Batches, DataSets
from unisono.data.open import is_resident
from unisono.data.resident import ResidentEval, ResidentTrain
from unisono.data.streamed import StreamedEval, StreamedTrain
from unisono.errors import UserError
from unisono.recipe.schema import Recipe

_PREFETCH = 4
"""Tasks that each worker makes ahead."""


class _Both:
    def __init__(self, train: ResidentTrain | StreamedTrain | None, evaluation: ResidentEval | StreamedEval) -> None:
        self._train = train
        self._eval = evaluation

    def train_steps(self, first_step: int, last_step: int) -> Iterator[list[Batch]]:
        assert self._train is not None
        return self._train.steps(first_step, last_step)

    def eval_batches(self) -> Iterator[Batch]:
        return self._eval.batches()

    def bad_image_count(self) -> int:
        return sum(
            part.bad_images for part in (self._train, self._eval) if isinstance(part, (StreamedTrain, StreamedEval))
        )

    def close(self) -> None:
        if isinstance(self._eval, StreamedEval):
            self._eval.close()


def open_batches(
    recipe: Recipe,
    sets: DataSets,
    *,
    replicas: range,
    rank: int,
    world_size: int,
    steps_per_epoch: int,
    device: torch.device,
    pinned_memory: bool,
    channels_last: bool,
    worker_start_method: str,
) -> Batches:
    """This rank's batches. Without replicas only validation batches are made.

    Raises:
        UserError: D109 a storage that the recipe cannot have, D112 too little shared memory for the loader.
    """
    augment = DeviceAugment(
        recipe.augment, channels=sets.channels, seed=recipe.seed, device=device, channels_last=channels_last
    )
    loading = loader_options(recipe, pinned_memory, worker_start_method)
    train: ResidentTrain | StreamedTrain | None = None
    if replicas:
        if is_resident(recipe, sets.train):
            assert isinstance(sets.train, ArraySource)
            train = ResidentTrain(
                recipe, sets.train, replicas=replicas, steps_per_epoch=steps_per_epoch, augment=augment, device=device
            )
        else:
            refuse_small_shared_memory(recipe, sets.channels)
            train = StreamedTrain(
                recipe,
                sets.train,
                sets.class_names,
                replicas=replicas,
                rank=rank,
                steps_per_epoch=steps_per_epoch,
                augment=augment,
                device=device,
                loading=loading,
            )
    place: dict[str, Any] = {"rank": rank, "world_size": world_size, "augment": augment, "device": device}
    if (
        isinstance(sets.val, ArraySource)
        and sets.val.images.shape[-1] == recipe.data.image_size
        and recipe.data.storage != "streamed"
    ):
        return _Both(train, ResidentEval(sets.val, batch_size=recipe.evaluate.per_device_batch_size, **place))
    return _Both(train, StreamedEval(recipe, sets.val, sets.class_names, loading=loading, **place))


def loader_options(recipe: Recipe, pinned_memory: bool, worker_start_method: str) -> dict[str, Any]:
    """torch's DataLoader options for this recipe and platform."""
    workers = recipe.data.workers
    options: dict[str, Any] = {"num_workers": workers, "pin_memory": pinned_memory}
    if workers:
        options |= {"prefetch_factor": _PREFETCH, "multiprocessing_context": worker_start_method}
    return options


def refuse_small_shared_memory(recipe: Recipe, channels: int, shared: Path = Path("/dev/shm")) -> None:
    """Batches travel through /dev/shm; containers give it 64 MiB unless told otherwise, and then die of a bus error.

    Raises:
        UserError: D112.
    """
    if not recipe.data.workers or not shared.is_dir():
        return
    batch = recipe.per_replica_batch_size * channels * recipe.data.image_size**2
    needed = recipe.data.workers * _PREFETCH * batch
    free = shutil.disk_usage(shared).free
    if needed > free:
        raise UserError(
            "D112",
            f"{free / 2**20:,.0f} MiB free in {shared}",
            f"{recipe.data.workers} workers x {_PREFETCH} batches of {batch / 2**20:.1f} MiB = {needed / 2**20:,.0f} MiB",
            "start the container with --shm-size=8g, or use fewer --workers",
        )
