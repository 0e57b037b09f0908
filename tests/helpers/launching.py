"""Whole jobs through the launcher, on a recipe small enough to be killed often."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from helpers.platform import NAME
from unisono.job.launch import LaunchRequest, LaunchResult, launch, rank_command

RECIPE = """
name = "killed"
replicas = 8
per_replica_batch_size = 2
train_for = "12 steps"
[model]
name = "mlp"
[data]
name = "synthetic"
image_size = 8
num_classes = 5
synthetic_train_images = 64
synthetic_val_images = 40
[optimizer]
name = "sgd"
learning_rate = 0.1
momentum = 0.9
[ema]
decay = 0.9
[evaluate]
every = "4 steps"
per_device_batch_size = 5
[checkpoint]
every = "2 steps"
keep = 4
"""


def recipe_file(folder: Path, **replace: str) -> Path:
    """The recipe as a file; keywords replace its texts."""
    text = RECIPE
    for old, new in replace.items():
        text = text.replace(old, new)
    path = folder / "killed.toml"
    path.write_text(text, encoding="utf-8")
    return path


def arguments(folder: Path, *more: str, devices: int = 2) -> list[str]:
    """The command line of a run in `folder`."""
    base = [
        "train",
        str(recipe_file(folder)),
        "--platform",
        NAME,
        "--devices",
        str(devices),
        "--run-dir",
        str(folder / "run"),
    ]
    return [*base, "--record-every", "1", *more]


def launch_run(
    folder: Path, *more: str, devices: int = 2, max_restarts: int = 2, hang_timeout_s: float = 30, elastic: bool = False
) -> LaunchResult:
    """Run to the end through the launcher, in this process."""
    folder.mkdir(exist_ok=True)
    (folder / "run" / "logs").mkdir(parents=True, exist_ok=True)
    request = LaunchRequest(
        command=rank_command(arguments(folder, *more, devices=devices)),
        devices=devices,
        run_dir=folder / "run",
        threads=1,
        max_restarts=max_restarts,
        hang_timeout_s=hang_timeout_s,
        elastic=elastic,
    )
    return launch(request)


def summary_of(folder: Path) -> dict[str, Any]:
    """The summary that the run left."""
    return dict(json.loads((folder / "run" / "summary.json").read_text(encoding="utf-8")))


def start_command(folder: Path, *more: str, devices: int = 2) -> subprocess.Popen[str]:
    """The command as a user starts it, in a process of its own."""
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "unisono", *arguments(folder, *more, devices=devices)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def wait_for_line(process: subprocess.Popen[str], needle: str) -> list[str]:
    """Read the command's output until a line holds `needle`."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line.rstrip())
        if needle in line:
            return seen
    raise AssertionError(f"no line with {needle!r}:\n" + "\n".join(seen))


def processes_of(folder: Path) -> list[int]:
    """Processes that still work on a run: the folder stands in their command line."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "status"]):
        command = process.info["cmdline"] or []
        if any(str(folder) in word for word in command) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.info["pid"])
    return [pid for pid in found if pid != os.getpid()]


def wait_until_gone(folder: Path, limit_s: float = 15) -> list[int]:
    """Processes of the run that are left after waiting for them to end."""
    gone, alive = psutil.wait_procs(
        [psutil.Process(pid) for pid in processes_of(folder) if psutil.pid_exists(pid)], timeout=limit_s
    )
    del gone
    return [process.pid for process in alive]


def stop(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str, float]:
    """Send a signal; exit code, the rest of the output, and seconds until the end."""
    started = time.monotonic()
    process.send_signal(number)
    rest, _ = process.communicate(timeout=60)
    return process.returncode, rest, time.monotonic() - started
