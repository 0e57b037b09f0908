"""The loader alone: images a second for 0, 1, 2, ... workers, and where one image's time goes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from unisono.data import DataSets, open_batches, open_data_sets
from unisono.data.base import FileSource
from unisono.data.decode import load_train, to_rgb
from unisono.recipe.schema import Recipe


def measure_input(recipe: Recipe, data_path: Path | None, workers: list[int], steps: int) -> list[dict[str, Any]]:
    """Images a second of one rank with each number of workers; one step's start-up is left out."""
    sets = open_data_sets(recipe, data_path)
    torch.set_num_threads(1)
    return [_with_workers(recipe, sets, count, steps) for count in workers]


def _with_workers(recipe: Recipe, sets: DataSets, workers: int, steps: int) -> dict[str, Any]:
    changed = recipe.model_copy(update={"data": recipe.data.model_copy(update={"workers": workers})})
    batches = open_batches(
        changed,
        sets,
        replicas=range(1),
        rank=0,
        world_size=1,
        steps_per_epoch=max(1, len(sets.train) // changed.global_batch_size),
        device=torch.device("cpu"),
        pinned_memory=False,
        channels_last=False,
        worker_start_method="fork",
    )
    images, started = 0, 0.0
    for step in batches.train_steps(0, steps + 1):
        if started:
            images += len(step[0].indices)
        started = started or time.perf_counter()
    speed = images / (time.perf_counter() - started)
    batches.close()
    return {"workers": workers, "images_per_second": speed, "a_worker": speed / max(1, workers)}


def where_time_goes(recipe: Recipe, data_path: Path | None, images: int = 50) -> dict[str, float] | None:
    """Milliseconds an image for opening, decoding whole, and decoding what the crop needs; None for sets without files."""
    sets = open_data_sets(recipe, data_path)
    if not isinstance(sets.train, FileSource):
        return None
    augment = recipe.augment
    totals = {"open": 0.0, "decode whole": 0.0, "decode and crop as trained": 0.0}
    size = recipe.data.image_size
    for index in range(min(images, len(sets.train))):
        path = sets.train.path(index)
        started = time.perf_counter()
        with Image.open(path) as image:
            totals["open"] += time.perf_counter() - started
            started = time.perf_counter()
            to_rgb(image)
            totals["decode whole"] += time.perf_counter() - started
        started = time.perf_counter()
        load_train(path, augment, size, seed=recipe.seed, epoch=0, index=index)
        totals["decode and crop as trained"] += time.perf_counter() - started
    count = min(images, len(sets.train))
    return {name: seconds / count * 1e3 for name, seconds in totals.items()}
