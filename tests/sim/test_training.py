"""The trainer's laws on simulated NPUs: the weights of a run on CPUs, byte for byte, also after a fault."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.sim, pytest.mark.slow, pytest.mark.timeout(300)]

RECIPE = """
name = "small"
replicas = 8
per_replica_batch_size = 2
train_for = "{steps} steps"
[model]
name = "{model}"
[data]
name = "synthetic"
image_size = {size}
num_classes = 5
synthetic_train_images = 70
synthetic_val_images = 23
workers = 0
[optimizer]
name = "sgd"
learning_rate = 0.1
momentum = 0.9
[evaluate]
every = "3 steps"
per_device_batch_size = 5
[checkpoint]
every = "2 steps"
"""


def recipe(folder: Path, model: str, size: int, steps: int = 3) -> Path:
    """A recipe file of that model."""
    path = folder / "small.toml"
    path.write_text(RECIPE.format(model=model, size=size, steps=steps))
    return path


def train(path: Path, folder: Path, *options: str, under: tuple[str, ...] = ()) -> dict[str, Any]:
    """The summary of `unisono train`, one thread a rank."""
    unisono = [sys.executable, "-m", "unisono"]
    simulate = [*unisono, "simulate", *under, "--"] if under else []
    done = subprocess.run(
        [*simulate, *unisono, "train", str(path), "--run-dir", str(folder), "--threads", "1", *options],
        cwd=path.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return summary


@pytest.mark.parametrize(
    ("model", "size", "ranks"), [("resnet50_cifar", 16, 8), ("mobilenet_v3_large", 32, 2), ("mlp", 8, 2)]
)
def test_simulated_npus_train_the_cpus_weights(tmp_path: Path, model: str, size: int, ranks: int) -> None:
    path = recipe(tmp_path, model, size)
    on_cpu = train(path, tmp_path / "cpu", "--platform", "cpu", "--devices", "1")
    simulated = train(path, tmp_path / "npu", "--platform", "npu", "--simulate", "--devices", str(ranks))
    assert simulated["digest"] == on_cpu["digest"]
    assert simulated["evaluation"] == on_cpu["evaluation"]
    assert simulated["simulated"] is True
    assert on_cpu["simulated"] is False


def test_a_rank_that_a_simulated_fault_took_is_restarted_and_the_weights_are_the_same(tmp_path: Path) -> None:
    path = recipe(tmp_path, "mlp", 8, steps=6)
    whole = train(path, tmp_path / "whole", "--platform", "cpu", "--devices", "1")
    struck = train(
        path, tmp_path / "struck", "--platform", "npu", "--devices", "2",
        under=("--devices", "2", "--fault", "rank=1,step=3,kind=exit"),
    )  # fmt: skip
    assert struck["digest"] == whole["digest"]
    logs = [path.read_text() for path in (tmp_path / "struck").rglob("*") if path.is_file() and path.suffix in (".log", ".txt")]
    assert any("rank 1, after 3 steps is gone" in text for text in logs)


def test_fp16_overflow_on_a_chip_that_saturates_skips_the_steps_that_infinities_skip_elsewhere(tmp_path: Path) -> None:
    path = recipe(tmp_path, "mlp", 8, steps=4)
    fp16 = ("--set", "precision.compute=fp16", "--set", "precision.initial_loss_scale=1e9", "--set", "non_finite_limit=50")
    infinities = train(path, tmp_path / "cpu", "--platform", "cpu", "--devices", "1", *fp16)
    saturated = train(
        path, tmp_path / "npu", "--platform", "npu", "--devices", "2", *fp16, under=("--devices", "2", "--chip", "910A")
    )
    assert infinities["skipped_steps"] > 3
    assert saturated["skipped_steps"] == infinities["skipped_steps"]
    assert saturated["digest"] == infinities["digest"]
