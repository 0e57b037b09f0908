"""Laws 4 and 5 on whole small runs: equality is tested for equality."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.ranks import run_ranks
from helpers.training import small_recipe, train_keywords

from unisono.errors import UserError
from unisono.job.learning_rate import learning_rate
from unisono.train.checkpoint import read_whole

pytestmark = pytest.mark.dist


def run_once(world_size: int, folder: Path, changes: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    summary: dict[str, Any] = run_ranks(world_size, train_keywords, str(folder), changes, keywords, timeout_s=110)[0]
    return summary


def test_law_4_every_image_is_counted_once_for_any_world_and_batch_size(tmp_path: Path) -> None:
    counts = set()
    for world_size, batch in ((1, 23), (2, 7), (3, 1), (4, 5)):
        changes = {"train_for": "1 steps", "evaluate.per_device_batch_size": batch}
        evaluation = run_once(world_size, tmp_path / f"{world_size}_{batch}", changes)["evaluation"]
        counts.add((evaluation["images"], evaluation["correct_top1"], evaluation["correct_top5"]))
    assert len(counts) == 1
    assert counts.pop()[0] == 23


def test_law_5_skipped_steps_move_neither_weights_nor_the_rate(tmp_path: Path) -> None:
    changes = {
        "precision.compute": "fp16",
        "precision.initial_loss_scale": 2.0**40,
        "non_finite_limit": 50,
        "schedule.name": "cosine",
        "train_for": "4 steps",
    }
    summary = run_once(1, tmp_path / "run", changes)
    assert summary["skipped_steps"] > 0
    recipe = small_recipe(changes)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    rates = [row["learning_rate"] for row in rows if row["kind"] == "train"]
    expected = [
        learning_rate(recipe.schedule, peak=0.1, step=step, total_steps=4, steps_per_epoch=4, global_batch_size=16)
        for step in range(4)
    ]
    assert rates == expected


def test_law_5_the_rate_follows_steps_for_any_world_size(tmp_path: Path) -> None:
    rates = []
    for world_size in (1, 2, 4):
        run_once(world_size, tmp_path / str(world_size), {"schedule.name": "cosine", "model.name": "mlp"})
        rows = [json.loads(line) for line in (tmp_path / str(world_size) / "metrics.jsonl").read_text().splitlines()]
        rates.append([row["learning_rate"] for row in rows if row["kind"] == "train"])
    assert rates[0] == rates[1] == rates[2]
    assert rates[0][-1] == 0.0


def test_a_checkpoint_holds_only_tensors_and_plain_types_and_its_model_loads_into_a_plain_one(tmp_path: Path) -> None:
    from unisono.models import build_model

    run_once(2, tmp_path / "run", {"train_for": "2 steps"})
    payload = read_whole(tmp_path / "run" / "checkpoints" / "last.pt")
    model = build_model(small_recipe({}).model, num_classes=5, channels=3, image_size=8, seed=9)
    model.load_state_dict(payload["model"])
    assert not any(name.startswith("module.") for name in payload["model"])
    assert payload["replica_buffers"]["bn1.running_mean"].shape == (8, 16)


def test_losses_that_are_not_finite_stop_the_run_and_leave_the_checkpoint_alone(tmp_path: Path) -> None:
    run_once(1, tmp_path / "run", {"model.name": "mlp"}, stop_after=2)
    before = (tmp_path / "run" / "checkpoints" / "step_2.pt").read_bytes()
    torch.set_num_threads(1)
    poison = {"model.name": "mlp", "augment.mean": [1e38], "augment.std": [1e-38], "non_finite_limit": 3}
    with pytest.raises(UserError) as caught:
        train_keywords(0, 1, str(tmp_path / "run"), poison, {"allow_changed": ("augment", "non_finite_limit")})
    assert (caught.value.code, int(caught.value.exit_code)) == ("T301", 3)
    assert (tmp_path / "run" / "checkpoints" / "step_2.pt").read_bytes() == before
