"""How long a user waits: for the help, and from the command to the end of a first step."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from record import Row, pair

_STEP = ["--platform", "cpu", "--steps", "1", "--set", "evaluate.every='0 steps'", "--json"]


def seconds(words: list[str], **environment: str) -> float:
    """Of a command, from start to end."""
    started = time.perf_counter()
    subprocess.run(words, check=True, capture_output=True, env={**os.environ, **environment})
    return time.perf_counter() - started


def startup_rows(*, pairs: int, quick: bool) -> list[Row]:
    """Each beside what no program of its kind can avoid: Python itself, or the import of torch."""
    python = sys.executable
    unisono = [python, "-m", "unisono"]
    taken: dict[str, list[float]] = {name: [] for name in ("help", "python", "one", "two", "cold", "torch")}
    for _ in range(pairs):
        taken["help"].append(seconds([*unisono, "--help"]))
        taken["python"].append(seconds([python, "-c", "pass"]))
        if quick:
            continue
        taken["torch"].append(seconds([python, "-c", "import torch"]))
        with tempfile.TemporaryDirectory() as folder:
            train = [*unisono, "train", "mlp_fashion_mnist", *_STEP]
            taken["one"].append(seconds([*train, "--devices", "1", "--run-dir", f"{folder}/one"]))
            taken["two"].append(seconds([*train, "--devices", "2", "--run-dir", f"{folder}/two"]))
            compiled = {"PYTHONPYCACHEPREFIX": f"{folder}/cache"}
            taken["cold"].append(seconds([*train, "--devices", "1", "--run-dir", f"{folder}/cold"], **compiled))
    rows = [
        pair(
            "`unisono --help`",
            "`python -c pass`",
            taken["help"],
            taken["python"],
            "ms",
            note="At most 300 ms are asked for the help.",
        )
    ]
    for name, told in (
        ("one", "one process"),
        ("two", "2 processes, launcher included"),
        ("cold", "one process, no byte code yet"),
    ):
        if taken[name]:
            work = f"`unisono train mlp_fashion_mnist --steps 1`, {told}, from command to end"
            rows.append(pair(work, "`import torch` alone", taken[name], taken["torch"], "ms"))
    return rows
