"""The measurements behind docs/benchmarks.md: each a pair of ways to do the same work, timed in turn in one process or run."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import decode
import torch
import torchvision
from PIL import Image
from torch import nn

from unisono.bench.case import Case, interleave
from unisono.models import build_model
from unisono.recipe.schema import ModelRecipe


@dataclass(frozen=True)
class Row:
    """One line of the table: ours against theirs."""

    work: str
    against: str
    ours: float
    theirs: float
    unit: str
    """Of `ours` and `theirs`; a time, so that less is better, or a speed."""
    ratio: float
    """How many times better ours is."""
    spread: float
    """(greatest - least) / median of the ratios of pairs."""
    runs: int


def in_turn(ours: Callable[[], None], theirs: Callable[[], None], repeats: int) -> tuple[list[float], list[float]]:
    """Seconds of each call, A B A B ..., after one call of each."""
    ours()
    theirs()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for call, kept in ((ours, times[0]), (theirs, times[1])):
            started = time.perf_counter()
            call()
            kept.append(time.perf_counter() - started)
    return times


def pair(work: str, against: str, times: tuple[list[float], list[float]]) -> Row:
    """A row of times in milliseconds."""
    ratios = [b / a for a, b in zip(*times, strict=True)]
    ours, theirs = median(times[0]), median(times[1])
    return Row(
        work,
        against,
        ours * 1e3,
        theirs * 1e3,
        "ms",
        median(ratios),
        (max(ratios) - min(ratios)) / median(ratios),
        len(ratios),
    )


def training_step(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> Callable[[], None]:
    """One bare step with SGD."""
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def step_row(name: str, size: int, classes: int, repeats: int) -> Row:
    """A training step as the trainer lays it out (NHWC) against torch's defaults (NCHW), batch 16, two threads."""
    torch.set_num_threads(2)
    recipe = ModelRecipe(name=name)
    images, labels = torch.randn(16, 3, size, size), torch.randint(0, classes, (16,))
    plain = build_model(recipe, num_classes=classes, channels=3, image_size=size, seed=0)
    ours = build_model(recipe, num_classes=classes, channels=3, image_size=size, seed=0).to(
        memory_format=torch.channels_last
    )
    times = in_turn(
        training_step(ours, images.to(memory_format=torch.channels_last), labels),
        training_step(plain, images, labels),
        repeats,
    )
    return pair(f"{name} {size} x {size}, batch 16, 2 threads, training step", "torch's defaults (NCHW)", times)


def decode_row(photographs: Path, repeats: int) -> tuple[Row, float]:
    """Random resized crops to 224 of JPEG photographs (a folder, or a tar of them), one core; and the mean difference of
    both ways' pixels. The spread is that of single photographs, from the tenth to the ninetieth percentile."""
    with tempfile.TemporaryDirectory() as unpacked:
        folder = photographs
        if photographs.is_file():
            folder = Path(unpacked)
            with tarfile.open(photographs) as tar:
                for member in (m for m in tar.getmembers() if m.name.endswith(".JPEG")):
                    file = tar.extractfile(member)
                    if file is not None:
                        (folder / Path(member.name).name).write_bytes(file.read())
        answer = decode.measure(folder, repeats, most=60)
    low, middle, high = answer.ratio_of_photographs
    row = Row(
        f"random resized crop to 224 of {answer.photographs} photographs, one core",
        "torchvision's transforms over PIL",
        answer.ours_ms,
        answer.torchvision_ms,
        "ms",
        answer.ratio,
        (high - low) / middle,
        answer.photographs,
    )
    return row, answer.mean_difference


def reduction_row(repeats: int, steps: int) -> Row:
    """Whole steps of ResNet-50 for CIFAR on two processes: the exact reduction against DDP's."""
    base = Case(
        recipe="resnet50_cifar10",
        devices=2,
        replicas=2,
        steps=steps,
        threads=1,
        settings=("data.name=synthetic", "data.num_classes=10"),
    )
    from dataclasses import replace

    exact, fast = interleave([replace(base, reduction="exact"), replace(base, reduction="fast")], repeats)
    times = ([run.step_time_ms / 1e3 for run in exact.runs], [run.step_time_ms / 1e3 for run in fast.runs])
    return pair("resnet50_cifar10, 2 processes, exact reduction, whole step", "fast (DDP's all-reduce)", times)


def tutorial_row(repeats: int, epochs: int = 1) -> Row:
    """An epoch of the perceptron on two processes against the tutorial's loop, both on the same images."""
    ours, theirs = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            words = [
                "train",
                "mlp_fashion_mnist_tutorial",
                "--platform",
                "cpu",
                "--devices",
                "2",
                "--epochs",
                str(epochs + 1),
                "--json",
            ]
            words += [
                "--run-dir",
                f"{folder}/run",
                "--set",
                "evaluate.every='0 steps'",
                "--set",
                "checkpoint.every='0 steps'",
            ]
            done = subprocess.run([sys.executable, "-m", "unisono", *words], capture_output=True, text=True, check=True)
            summary = json.loads(done.stdout)
            ours.append(summary["step_time_ms"] / 1e3 * summary["steps"] / summary["epochs"])
            answer = Path(folder) / "seconds"
            loop = Path(__file__).parent / "tutorial_loop.py"
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "torch.distributed.run",
                    "--standalone",
                    "--nproc-per-node=2",
                    str(loop),
                    str(answer),
                ],
                check=True,
                capture_output=True,
            )
            theirs.append(float(answer.read_text()))
    return pair(
        "mlp_fashion_mnist, 2 processes, one epoch",
        "the tutorial's loop (DataLoader, ToTensor a sample, DDP)",
        (ours, theirs),
    )


def versions() -> str:
    """What the rows were measured with."""
    return f"torch {torch.__version__}, torchvision {torchvision.__version__}, Pillow {Image.__version__}"
