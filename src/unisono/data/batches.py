"""One rank's batches: resident or streamed, each split by itself."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from unisono.data.augment import DeviceAugment
from unisono.data.base import ArraySource, Batch, Batches, DataSets, Source
from unisono.data.open import is_resident
from unisono.data.resident import ResidentEval, ResidentTrain
from unisono.data.streamed import StreamedEval, StreamedTrain
from unisono.errors import UserError
from unisono.recipe.schema import Recipe

log = logging.getLogger(__name__)

PREFETCH = 3
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
    ranks_on_node: int = 1,
) -> Batches:
    """This rank's batches. Without replicas only validation batches are made.

    Args:
        ranks_on_node: processes of this machine that load at the same time; they share its /dev/shm.

    Raises:
        UserError: D109 a storage that the recipe cannot have, D112 too little shared memory for the loader.
    """
    augment = DeviceAugment(
        recipe.augment, channels=sets.channels, seed=recipe.seed, device=device, channels_last=channels_last
    )
    loading = loader_options(recipe, pinned_memory, worker_start_method)
    place: dict[str, Any] = {"rank": rank, "augment": augment, "device": device}
    streams: dict[str, Any] = {"class_names": sets.class_names, "loading": loading}
    waiting = 0
    train: ResidentTrain | StreamedTrain | None = None
    if replicas and is_resident(recipe, sets.train):
        assert isinstance(sets.train, ArraySource)
        train = ResidentTrain(
            recipe, sets.train, replicas=replicas, steps_per_epoch=steps_per_epoch, augment=augment, device=device
        )
    elif replicas:
        waiting += recipe.per_replica_batch_size
        train = StreamedTrain(
            recipe, sets.train, replicas=replicas, steps_per_epoch=steps_per_epoch, **place, **streams
        )
    place["world_size"] = world_size
    evaluation: ResidentEval | StreamedEval
    if _eval_is_resident(recipe, sets.val):
        assert isinstance(sets.val, ArraySource)
        evaluation = ResidentEval(sets.val, batch_size=recipe.evaluate.per_device_batch_size, **place)
    else:
        waiting += min(recipe.evaluate.per_device_batch_size, len(sets.val))
        evaluation = StreamedEval(recipe, sets.val, **place, **streams)
    refuse_small_shared_memory(recipe, sets.channels, images_waiting=waiting, ranks_on_node=ranks_on_node)
    if waiting and rank == 0:
        warn_of_many_workers(recipe.data.workers, ranks_on_node, os.cpu_count() or 1)
    return _Both(train, evaluation)


def _eval_is_resident(recipe: Recipe, source: Source) -> bool:
    right_size = isinstance(source, ArraySource) and source.images.shape[-1] == recipe.data.image_size
    return right_size and recipe.data.storage != "streamed"


def warn_of_many_workers(workers: int, ranks_on_node: int, cores: int) -> None:
    """More loader processes than cores take turns; that is slow, not wrong."""
    if workers * ranks_on_node > cores:
        log.warning(
            "%d loader processes (%d for each of %d ranks) share %d cores; --workers %d would fit",
            workers * ranks_on_node,
            workers,
            ranks_on_node,
            cores,
            max(1, cores // ranks_on_node),
        )


def loader_options(recipe: Recipe, pinned_memory: bool, worker_start_method: str) -> dict[str, Any]:
    """torch's DataLoader options for this recipe and platform."""
    workers = recipe.data.workers
    options: dict[str, Any] = {"num_workers": workers, "pin_memory": pinned_memory}
    if workers:
        options |= {"prefetch_factor": PREFETCH, "multiprocessing_context": worker_start_method}
    return options


def refuse_small_shared_memory(
    recipe: Recipe, channels: int, *, images_waiting: int, ranks_on_node: int, shared: Path = Path("/dev/shm")
) -> None:
    """Batches travel through /dev/shm; containers give it 64 MiB unless told otherwise, and then die of a bus error.

    Args:
        images_waiting: images of one training batch and of one validation batch, as far as they are streamed. Loaders of
            both stay once they have begun.

    Raises:
        UserError: D112.
    """
    workers = recipe.data.workers
    if not workers or not images_waiting or not shared.is_dir():
        return
    batches = images_waiting * channels * recipe.data.image_size**2
    needed = ranks_on_node * workers * PREFETCH * batches
    free = shutil.disk_usage(shared).free
    if needed > free:
        raise UserError(
            "D112",
            f"{free / 2**20:,.0f} MiB free in {shared}",
            f"{ranks_on_node} rank(s) x {workers} workers x {PREFETCH} batches of {batches / 2**20:.1f} MiB for training "
            f"and validation = {needed / 2**20:,.0f} MiB",
            f"start the container with --shm-size={-(-needed // 2**30) + 1}g, use fewer --workers, "
            "or a smaller evaluate.per_device_batch_size",
        )
