"""Whole training loops with data: `unisono train` against the loops of timm, Lightning, Accelerate and torchvision."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from record import Row, pair

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE / ".venv"
PEERS = {
    "timm": "timm's training loop",
    "lightning": "Lightning's Trainer",
    "accelerate": "Accelerate's example loop",
    "torchvision": "torchvision's reference loop",
}
BATCH, FIRST_STEPS = 16, 5
TASKS: dict[str, dict[str, Any]] = {
    "resnet": {"model": "resnet50_cifar", "size": 32, "steps": 12, "recipe": "resnet50_cifar10"},
    "mobilenet": {
        "model": "mobilenet_v3_large",
        "size": 224,
        "steps": 12,
        "recipe": str(HERE / "mobilenetv3_large_photographs.toml"),
    },
}


def peers_python() -> Path:
    """The interpreter of the peers' environment, made and filled when it is missing.

    It sees this interpreter's packages, so that torch is not installed twice and is the same for all.

    Raises:
        OSError, CalledProcessError: it cannot be made.
    """
    python = ENVIRONMENT / "bin" / "python"
    wanted = (HERE / "requirements.txt").read_text(encoding="utf-8")
    filled = ENVIRONMENT / "requirements.txt"
    if filled.is_file() and filled.read_text(encoding="utf-8") == wanted:
        return python
    venv.create(ENVIRONMENT, with_pip=True, clear=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    parent = ENVIRONMENT / "lib" / version / "site-packages" / "parent.pth"
    parent.write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n", encoding="utf-8")
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, "-r", str(HERE / "requirements.txt")], check=True, capture_output=True, text=True)
    filled.write_text(wanted, encoding="utf-8")
    return python


def make_photographs(folder: Path, *, classes: int = 4, images: int = 32) -> Path:
    """An image folder of smooth JPEGs of photographs' size, where no real ones are given."""
    generator = np.random.default_rng(0)
    for part in ("train", "val"):
        for number in range(images if part == "train" else classes):
            place = folder / part / f"class_{number % classes}"
            place.mkdir(parents=True, exist_ok=True)
            rough = Image.fromarray(generator.integers(0, 256, (24, 32, 3), np.uint8))
            rough.resize((500, 375), Image.Resampling.BICUBIC).save(place / f"{number}.jpg", quality=90)
    return folder


def ours(task: dict[str, Any], data: Path | None) -> float:
    """Images a second of `unisono train`, first steps apart."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["train", task["recipe"], "--platform", "cpu", "--devices", "1", "--replicas", "1", "--threads", "2"]
        words += ["--batch-size", str(BATCH), "--steps", str(FIRST_STEPS + task["steps"]), "--record-every", "1"]
        words += ["--set", "evaluate.every='0 steps'", "--set", "checkpoint.every='0 steps'", "--json"]
        words += ["--run-dir", f"{folder}/run", "--max-restarts", "0"]
        words += (
            ["--data-path", str(data)] if data else ["--set", "data.name=synthetic", "--set", "data.num_classes=10"]
        )
        done = subprocess.run([sys.executable, "-m", "unisono", *words], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"unisono train ended with exit code {done.returncode}: {done.stderr[-400:]}")
        speed: float = json.loads(done.stdout)["images_per_second"]
    return speed


def theirs(python: Path, peer: str, task: dict[str, Any], data: Path | None) -> dict[str, Any]:
    """What a peer's loop prints.

    Raises:
        CalledProcessError: it did not end.
    """
    words = [
        str(python),
        str(HERE / "peers" / f"{peer}_loop.py"),
        "--model",
        task["model"],
        "--size",
        str(task["size"]),
    ]
    words += ["--batch", str(BATCH), "--first", str(FIRST_STEPS), "--steps", str(task["steps"])]
    words += ["--data", str(data)] if data else []
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    answer: dict[str, Any] = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    return answer


def loop_rows(name: str, data: Path | None, *, pairs: int, quick: bool) -> tuple[list[Row], list[str]]:
    """Each peer in turn with ours, and what could not be measured."""
    task = TASKS[name] | ({"steps": 2} if quick else {})
    said: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        note = "Images: given on the command line."
        if data is None:
            note = "Images: made from nothing, for no folder of real ones was given."
            data = make_photographs(Path(folder)) if name == "mobilenet" else None
        figures: dict[str, tuple[list[float], list[float]]] = {peer: ([], []) for peer in PEERS}
        try:
            python = peers_python()
        except (OSError, subprocess.CalledProcessError) as error:
            last = ((getattr(error, "stderr", None) or str(error)).strip().splitlines() or ["no output"])[-1]
            return [], [f"The peers' environment cannot be made, so their loops were not measured: {last[:200]}"]
        for _ in range(pairs):
            mine = ours(task, data)
            for peer in list(figures):
                try:
                    speed = theirs(python, peer, task, data)["images_per_second"]
                except subprocess.CalledProcessError as error:
                    last = ((error.stderr or "").strip().splitlines() or ["no output"])[-1]
                    said.append(f"{PEERS[peer]} did not run: {last[:200]}")
                    del figures[peer]
                    continue
                figures[peer][0].append(mine)
                figures[peer][1].append(speed)
    work = f"{task['model']} {task['size']} x {task['size']}, batch {BATCH}, 2 threads, whole training loop"
    return [pair(work, PEERS[peer], *taken, "images/s", least=1.0, note=note) for peer, taken in figures.items()], said
