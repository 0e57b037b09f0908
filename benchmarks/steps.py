"""Training steps: the trainer's against torch's defaults, and against a loop written by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from record import Row, pair

HERE = Path(__file__).resolve().parent
TASKS: dict[str, dict[str, Any]] = {
    "mobilenet": {"model": "mobilenet_v3_large", "size": 224, "classes": 1000, "batch": 16},
    "resnet": {"model": "resnet50_cifar", "size": 32, "classes": 10, "batch": 16},
}
_SMALL: dict[str, Any] = {
    "mobilenet": {"model": "mobilenet_v3_large", "size": 32, "classes": 10, "batch": 2},
    "resnet": {"model": "resnet20_cifar", "size": 16, "classes": 10, "batch": 2},
}


class StepProcess:
    """A step_server.py that has taken its first steps."""

    def __init__(self, ways: str, task: dict[str, Any], threads: int) -> None:
        command = [sys.executable, str(HERE / "step_server.py"), ways, json.dumps(task), str(threads)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._answer()

    def seconds(self, way: str, steps: int) -> float:
        """Seconds a step."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{way} {steps}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        """End it."""
        self._process.communicate()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a step process ended with exit code {self._process.wait()}")
        return line


def step_rows(name: str, least: float, *, pairs: int, quick: bool) -> list[Row]:
    """Two processes in turn, batch 16, two threads each: ours against torch's defaults. A process that waits uses no core."""
    task, steps, threads = (_SMALL if quick else TASKS)[name], 1 if quick else 5, 1 if quick else 2
    ours, theirs = StepProcess("unisono", task, threads), StepProcess("defaults", task, threads)
    figures: tuple[list[float], list[float]] = ([], [])
    for _ in range(pairs):
        figures[0].append(ours.seconds("unisono", steps))
        figures[1].append(theirs.seconds("defaults", steps))
    ours.close()
    theirs.close()
    work = f"{_told(task)}, {threads} threads, training step"
    return [pair(work, "torch's defaults (NCHW, the allocator's own settings)", *figures, "ms", least=least)]


def overhead_rows(*, pairs: int, quick: bool) -> list[Row]:
    """The trainer against a bare loop with its settings, in turn in one process, so that memory lies alike."""
    rows = []
    for name, steps in (("resnet", 10), ("mobilenet", 5)):
        task, threads = (_SMALL if quick else TASKS)[name], 1 if quick else 2
        process = StepProcess("unisono,bare", task, threads)
        figures: tuple[list[float], list[float]] = ([], [])
        for number in range(2 * pairs):
            order = ("unisono", "bare") if number % 2 else ("bare", "unisono")
            taken = {way: process.seconds(way, 1 if quick else steps) for way in order}
            figures[0].append(taken["unisono"])
            figures[1].append(taken["bare"])
        process.close()
        against = "a bare loop with the same settings and batches"
        rows.append(pair(f"{_told(task)}, {threads} threads, the trainer's step", against, *figures, "ms", least=0.98))
    return rows


def _told(task: dict[str, Any]) -> str:
    return f"{task['model']} {task['size']} x {task['size']}, batch {task['batch']}"
