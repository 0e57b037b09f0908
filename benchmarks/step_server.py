"""Trains on demand: a process that takes steps when asked, so that two processes can be timed in turn.

    python step_server.py WAYS TASK THREADS        (WAYS: some of unisono,bare,defaults joined by commas)

It says `ready` after its first steps; then each line `WAY STEPS` on standard input is answered by seconds a step.
- unisono: the trainer's own step with all that surrounds it, as `unisono train` runs it in this process.
- bare: a hand-written loop with the trainer's settings: its memory layout, allocator, optimizer and batches.
- defaults: the same model as torch makes it: NCHW, the allocator's own settings, images at hand.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unisono.data import Batch, DataSets, open_batches, open_data_sets
from unisono.distributed.session import open_session
from unisono.job.control import StopFlag
from unisono.job.world import World
from unisono.models import build_model
from unisono.platforms.select import select_platform
from unisono.recipe.load import validate_recipe
from unisono.recipe.schema import Recipe
from unisono.train.build import Surroundings, build_trainer
from unisono.train.pulse import Pulse
from unisono.train.report import Silent
from unisono.train.run import RunRequest, decide
from unisono.train.run_folder import RunFolder
from unisono.train.step import train_step

FIRST_STEPS = 4
_ENDLESS = 1_000_000
Step = Callable[[], None]


def recipe_of(task: dict[str, Any]) -> Recipe:
    """Images from nothing, SGD with momentum; neither evaluation nor checkpoints."""
    classes = task["classes"]
    data = {"name": "synthetic", "image_size": task["size"], "num_classes": classes, "workers": 0}
    table = {
        "name": "benchmark",
        "replicas": 1,
        "per_replica_batch_size": task["batch"],
        "train_for": f"{_ENDLESS} steps",
        "model": {"name": task["model"]},
        "data": {**data, "synthetic_train_images": 16 * task["batch"], "synthetic_val_images": 16},
        "optimizer": {"name": "sgd", "learning_rate": 0.01, "momentum": 0.9},
        "evaluate": {"every": "0 steps"},
        "checkpoint": {"every": "0 steps"},
    }
    return validate_recipe(table, Path("benchmark.toml"))


class Server:
    """The steps of one process, made when they are first asked for."""

    def __init__(self, task: dict[str, Any], threads: int, folder: Path) -> None:
        torch.set_num_threads(threads)
        self._task, self._threads, self._folder = task, threads, folder
        self._recipe = recipe_of(task)
        self._open: list[Any] = []

    def unisono(self) -> Step:
        """The trainer's step: batches, pulse, votes, clock, records."""
        platform = select_platform("cpu")
        device = platform.activate(0, 1)
        sets = open_data_sets(self._recipe, None)
        request = RunRequest(
            recipe=self._recipe,
            data_path=None,
            platform=platform,
            world=World(),
            threads=self._threads,
            runs_dir=self._folder,
            run_dir=self._folder,
        )
        session = open_session(request.world, device, platform.backend, 60.0)
        self._open.append(session)
        around = Surroundings(
            platform=platform,
            folder=RunFolder(self._folder),
            pulse=Pulse(None, None),
            stop=StopFlag(),
            reporter=Silent(),
            record_every=10,
            trace=False,
        )
        trainer = build_trainer(decide(request, sets), session.__enter__(), sets, around)
        steps = trainer.batches.train_steps(0, _ENDLESS)

        def step() -> None:
            trainer.pulse.at("data", trainer.state.position)
            result = train_step(trainer, next(steps))
            trainer.account(result)
            trainer.after_step(result)

        return step

    def bare(self) -> Step:
        """What one would write by hand with the same settings."""
        select_platform("cpu").activate(0, 1)
        model = self._model().to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        batches = self._batches(open_data_sets(self._recipe, None))
        criterion = nn.CrossEntropyLoss()

        def step() -> None:
            (batch,) = next(batches)
            loss = criterion(model(batch.images), batch.labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return step

    def defaults(self) -> Step:
        """The model as torch makes it."""
        task = self._task
        model = self._model()
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        images = torch.randn(task["batch"], 3, task["size"], task["size"])
        labels = torch.randint(0, task["classes"], (task["batch"],))
        criterion = nn.CrossEntropyLoss()

        def step() -> None:
            optimizer.zero_grad()
            criterion(model(images), labels).backward()
            optimizer.step()

        return step

    def _model(self) -> nn.Module:
        task = self._task
        model = build_model(
            self._recipe.model, num_classes=task["classes"], channels=3, image_size=task["size"], seed=0
        )
        return model.train()

    def _batches(self, sets: DataSets) -> Iterator[list[Batch]]:
        return open_batches(
            self._recipe,
            sets,
            replicas=range(1),
            rank=0,
            world_size=1,
            steps_per_epoch=16,
            device=torch.device("cpu"),
            pinned_memory=False,
            channels_last=True,
            worker_start_method="fork",
        ).train_steps(0, _ENDLESS)


def main() -> int:
    """Answer until standard input ends."""
    names, task, threads = sys.argv[1].split(","), json.loads(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory() as folder:
        server = Server(task, threads, Path(folder))
        ways: dict[str, Step] = {name: getattr(server, name)() for name in names}
        for step in ways.values():
            for _ in range(FIRST_STEPS):
                step()
        print("ready", flush=True)
        for line in sys.stdin:
            name, count = line.split()
            step, started = ways[name], time.perf_counter()
            for _ in range(int(count)):
                step()
            print((time.perf_counter() - started) / int(count), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
