"""Several processes: the tutorial's epoch, weak scaling, the exact reduction, and the forecast held against all of them."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from record import Row, pair
from tutorial_loop import lay_out

from unisono.bench.case import Case, Measured, machine, measure
from unisono.bench.collectives import measure_collectives
from unisono.bench.forecast import Link, buckets_of, fit_link, forecast
from unisono.models import build_model
from unisono.recipe.schema import ModelRecipe

HERE = Path(__file__).resolve().parent
MODELS = {"resnet": ("resnet50_cifar", 32, 10), "mobilenet": ("mobilenet_v3_large", 224, 1000)}


def case(name: str, *, quick: bool, steps: int) -> Case:
    """One process, one thread, batch 16, images from nothing."""
    model, size, classes = ("resnet20_cifar", 16, 10) if quick else MODELS[name]
    settings = [f"model.name={model}", "data.name=synthetic", f"data.num_classes={classes}", f"data.image_size={size}"]
    return Case(
        recipe="resnet50_cifar10",
        devices=1,
        replicas=1,
        steps=8 if quick else steps,
        threads=1,
        per_replica_batch_size=2 if quick else 16,
        settings=(*settings, "augment.crop_padding=0", "augment.horizontal_flip=0.0", "optimizer.learning_rate=0.01"),
    )


def apart(one: Case, processes: int) -> float:
    """Images a second of several processes that run at once and never talk, together."""
    with ThreadPoolExecutor(processes) as threads:
        return sum(run.images_per_second for run in threads.map(measure, [one] * processes))


def scaling_rows(name: str, *, pairs: int, quick: bool) -> list[Row]:
    """One process, two that never talk, two that train together (exact, and fast), in turn."""
    one = case(name, quick=quick, steps=5 + (12 if name == "resnet" else 8))
    two = replace(one, devices=2, replicas=2)
    taken: dict[str, list[float]] = {"one": [], "apart": [], "exact": [], "fast": []}
    for _ in range(pairs):
        taken["one"].append(2 * measure(one).images_per_second)
        taken["exact"].append(measure(replace(two, reduction="exact")).images_per_second)
        taken["apart"].append(apart(one, 2))
        if name == "resnet":
            taken["fast"].append(measure(replace(two, reduction="fast")).images_per_second)
    told = f"{MODELS[name][0]}, 2 processes, 1 thread each, batch 16"
    unit = "images/s"
    beside = "two processes that never talk"
    rows = []
    if name == "resnet":
        rows.append(pair(told, "twice one process (weak scaling)", taken["exact"], taken["one"], unit, least=0.95))
        rows.append(pair(told, beside, taken["exact"], taken["apart"], unit))
        rows.append(
            pair(told, "the same with fast (DDP's all-reduce)", taken["exact"], taken["fast"], unit, least=0.95)
        )
    else:
        rows.append(pair(told, "twice one process (weak scaling)", taken["exact"], taken["one"], unit))
        rows.append(pair(told, beside, taken["exact"], taken["apart"], unit, least=0.95))
    rows.append(
        pair(
            told.replace("2 processes", "2 processes that never talk"),
            "twice one process",
            taken["apart"],
            taken["one"],
            unit,
        )
    )
    return rows


def tutorial_rows(*, pairs: int, quick: bool) -> list[Row]:
    """The second epoch of the perceptron on two processes, against the tutorial's loop on the same images.

    The recipe has the tutorial's eight cards as replicas; with two, a process computes what the tutorial's does.
    """
    ours: dict[int, list[float]] = {8: [], 2: []}
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as images:
        lay_out(Path(images))
        for _ in range(pairs):
            with tempfile.TemporaryDirectory() as folder:
                for replicas, taken in ours.items():
                    taken.append(tutorial_epoch_s(replicas, Path(folder) / str(replicas), quick=quick))
                answer = Path(folder) / "seconds"
                command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
                subprocess.run(
                    [*command, str(HERE / "tutorial_loop.py"), images, str(answer), *(["40"] if quick else [])],
                    check=True,
                    capture_output=True,
                )
                theirs.append(float(answer.read_text()))
    against = "the tutorial's loop (torchvision's FashionMNIST, ToTensor a sample, DataLoader, DDP on gloo)"
    return [
        pair("mlp_fashion_mnist, 2 processes, one epoch", against, ours[8], theirs, "s", least=2.5),
        pair("the same with 2 replicas of 256 for 8 of 64", against, ours[2], theirs, "s"),
    ]


def tutorial_epoch_s(replicas: int, run_dir: Path, *, quick: bool) -> float:
    """Seconds of the second epoch (of 40 steps when quick) of the tutorial's recipe on two processes."""
    words = ["train", "mlp_fashion_mnist_tutorial", "--platform", "cpu", "--devices", "2", "--json"]
    words += ["--run-dir", str(run_dir), "--set", "evaluate.every='0 steps'"]
    words += ["--set", f"replicas={replicas}", "--set", f"per_replica_batch_size={512 // replicas}"]
    words += ["--set", "checkpoint.every='0 steps'", *(["--steps", "40"] if quick else ["--epochs", "2"])]
    done = subprocess.run([sys.executable, "-m", "unisono", *words], capture_output=True, text=True, check=True)
    summary = json.loads(done.stdout)
    return step_s(summary) * (40 if quick else summary["steps"] / summary["epochs"])


def step_s(summary: dict[str, Any]) -> float:
    """Mean seconds a step in the second half of a run, from its records; with two epochs that is the second one."""
    rows = [json.loads(line) for line in (Path(summary["run_dir"]) / "metrics.jsonl").read_text().splitlines()]
    rows = [row for row in rows if row["kind"] == "train"]
    half = summary["steps"] / 2
    stretches = [(now["step"] - last["step"], now) for last, now in pairwise(rows) if last["step"] >= half]
    milliseconds: float = sum(count * now["step_time_ms"] for count, now in stretches)
    return milliseconds / 1e3 / sum(count for count, _ in stretches)


def forecast_rows(*, pairs: int, quick: bool) -> list[Row]:
    """The forecast from one process and the measured link, against measured steps of 2 and 4 processes.

    Where there are more processes than cores, each has its share of a core: the step on one device is stretched by it.
    """
    one = case("resnet", quick=quick, steps=15)
    counts = (1, 2) if quick else (1, 2, 4)
    runs: dict[int, list[Measured]] = {count: [] for count in counts}
    links: dict[int, Link] = {}
    for count in counts[1:]:
        links[count] = fit_link(measure_collectives(count, one.platform, 3), count)
    for _ in range(pairs):
        for count in counts:
            runs[count].append(measure(replace(one, devices=count, replicas=count)))
    weights = gradient_bytes(quick)
    cores = int(machine()["cores"])
    rows = []
    for count in counts[1:]:  # on one device the forecast is its own input
        measured = [run.step_time_ms / 1e3 for run in runs[count]]
        predicted = []
        for alone in runs[1]:
            told = forecast(
                step_time_ms=alone.step_time_ms * max(1.0, count / cores),
                gradient_bytes=weights,
                images=16,
                devices=count,
                inside=links[count],
                between=links[count],
                devices_a_node=count,
                buckets=buckets_of(weights),
                overlap=0.0 if count >= cores else 0.5,
            )
            predicted.append(told.step_time_ms / 1e3)
        link = links[count]
        note = f"Link of {count} processes: {link.latency_us:.0f} us, {link.bandwidth_gb_s:.2f} GB/s."
        row = pair(f"resnet50_cifar, {count} processes, step", "the step that is forecast", measured, predicted, "ms")
        error = row.theirs / row.ours - 1
        rows.append(replace(row, note=f"{note} The forecast differs from the measured step by {error:+.0%}."))
    return rows


def gradient_bytes(quick: bool) -> int:
    """Of ResNet-50 for CIFAR in fp32."""
    recipe = ModelRecipe(name="resnet20_cifar" if quick else "resnet50_cifar")
    model = build_model(recipe, num_classes=10, channels=3, image_size=32, seed=0)
    return sum(parameter.numel() for parameter in model.parameters()) * 4


def zoo_rows() -> list[Row]:
    """The forecast against the model zoo's published pairs of one card and eight."""
    from zoo import PAIRS

    rows = []
    for one in PAIRS:
        told = forecast(
            step_time_ms=one.batch / one.one_card * 1e3,
            gradient_bytes=one.parameters * 2,
            images=one.batch,
            devices=8,
            inside=Link("hccs", 10, 30, "preset"),
            between=Link("roce", 20, 12.5, "preset"),
            devices_a_node=8,
            buckets=buckets_of(one.parameters * 2),
        )
        published = one.eight_cards / (8 * one.one_card)
        note = f"{one.work}: forecast {told.efficiency:.1%}, published {published:.1%}; {one.remark}"
        ours, theirs = [told.images_per_second], [one.eight_cards]
        row = pair(f"{one.work}, 8 Ascend 910, forecast", "the model zoo's published figure", ours, theirs, "images/s")
        rows.append(replace(row, note=note))
    assert all(math.isfinite(row.ratio) for row in rows)
    return rows
