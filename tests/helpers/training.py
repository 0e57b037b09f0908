"""Small whole runs for the laws' tests, in a module that fresh processes can import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from helpers.platform import platform_under_test
from unisono.job.control import StopFlag
from unisono.job.world import World
from unisono.platforms.base import Platform
from unisono.recipe.load import validate_recipe
from unisono.recipe.schema import Recipe
from unisono.train.faults import FaultPlan, parse_fault
from unisono.train.pulse import Pulse
from unisono.train.report import Silent
from unisono.train.run import RunRequest, run

TABLE: dict[str, Any] = {
    "name": "small",
    "replicas": 8,
    "per_replica_batch_size": 2,
    "train_for": "6 steps",
    "model": {"name": "resnet20_cifar"},
    "data": {
        "name": "synthetic",
        "image_size": 8,
        "num_classes": 5,
        "synthetic_train_images": 70,
        "synthetic_val_images": 23,
        "workers": 0,
    },
    "optimizer": {"name": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 1e-4},
    "evaluate": {"every": "3 steps", "per_device_batch_size": 5},
    "checkpoint": {"every": "2 steps", "keep": 20},
}


def small_recipe(changes: dict[str, Any]) -> Recipe:
    """The small recipe with dotted keys changed."""
    table: dict[str, Any] = {key: dict(value) if isinstance(value, dict) else value for key, value in TABLE.items()}
    for dotted, value in changes.items():
        *parents, last = dotted.split(".")
        here = table
        for parent in parents:
            here = here.setdefault(parent, {})
        here[last] = value
    return validate_recipe(table, Path("small.toml"))


def train(
    rank: int,
    world_size: int,
    run_dir: str,
    changes: dict[str, Any],
    *,
    stop_after: int | None = None,
    allow_changed: tuple[str, ...] = (),
    resume: str | None = None,
    trace: bool = False,
    faults: tuple[str, ...] = (),
    tell: bool = False,
    platform: Platform | None = None,
) -> dict[str, Any]:
    """One rank of a run in `run_dir`; goes on there when it holds a checkpoint. Rank 0's summary is whole.

    With `tell` the summary holds under `said` what the run said.
    """
    torch.set_num_threads(1)
    request = RunRequest(
        recipe=small_recipe(changes),
        data_path=None,
        platform=platform or platform_under_test(),
        world=World(rank=rank, world_size=world_size, local_rank=rank, local_world_size=world_size),
        threads=1,
        runs_dir=Path(run_dir).parent,
        run_dir=Path(run_dir),
        resume=resume,
        allow_changed=allow_changed,
        record_every=1,
        trace=trace,
        stop_after=stop_after,
    )
    plan = FaultPlan([parse_fault(text) for text in faults], rank, rank, 0)
    listener = Listener()
    summary = run(request, listener, Pulse(None, plan), StopFlag())
    return summary | {"said": listener.texts} if tell else summary


class Listener(Silent):
    """Keeps what a run says."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def said(self, text: str) -> None:
        """Keep it."""
        self.texts.append(text)


def train_keywords(
    rank: int, world_size: int, run_dir: str, changes: dict[str, Any], keywords: dict[str, Any]
) -> dict[str, Any]:
    """As `train`, with the keywords as one argument."""
    return train(rank, world_size, run_dir, changes, **keywords)
