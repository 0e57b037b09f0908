"""Law 1: the same recipe, seed and threads give the same bytes on any number of ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.ranks import run_ranks
from helpers.training import train_keywords
from helpers.variations import MIXED, VARIATIONS

from unisono.train.checkpoint import read_whole

pytestmark = pytest.mark.dist

# The soak takes every variation through every world size; here odd worlds go to the cheap ones.
ODD = {"perceptron, averaged weights": (3, 7, 8), "fp16 whose scale overflows, perceptron": (3, 7), "lamb": (7,)}


def run_once(world_size: int, folder: Path, changes: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    summary: dict[str, Any] = run_ranks(world_size, train_keywords, str(folder), changes, keywords, timeout_s=110)[0]
    return summary


@pytest.mark.parametrize("name", list(VARIATIONS))
def test_the_number_of_ranks_changes_no_byte_and_no_count(name: str, tmp_path: Path) -> None:
    changes = VARIATIONS[name]
    alone = run_once(1, tmp_path / "1", changes)
    for world_size in (2, 4, *ODD.get(name, ())):
        split = run_once(world_size, tmp_path / str(world_size), changes)
        assert split["digest"] == alone["digest"], f"world size {world_size}"
        assert split["evaluation"] == alone["evaluation"]
        assert (split["steps"], split["skipped_steps"]) == (alone["steps"], alone["skipped_steps"])
    assert ("overflows" in name) == (alone["skipped_steps"] > 0)


@pytest.mark.parametrize("world_size", [3, 7, 8])
def test_batch_norm_does_not_notice_replicas_that_do_not_divide(world_size: int, tmp_path: Path) -> None:
    changes = {"train_for": "2 steps", "ema.decay": 0.9}
    alone = run_once(1, tmp_path / "1", changes)
    split = run_once(world_size, tmp_path / "split", changes)
    assert split["digest"] == alone["digest"]


def test_checkpoint_files_are_the_same_bytes_whoever_wrote_them(tmp_path: Path) -> None:
    files = set()
    for world_size in (1, 3):
        run_once(world_size, tmp_path / str(world_size), {"train_for": "2 steps", "ema.decay": 0.9})
        files.add((tmp_path / str(world_size) / "checkpoints" / "step_2.pt").read_bytes())
    assert len(files) == 1


def test_loader_workers_storage_and_buckets_change_no_byte_on_any_number_of_ranks(tmp_path: Path) -> None:
    changes = MIXED | {"train_for": "3 steps"}
    digests = {
        name: run_once(world_size, tmp_path / name, changes | more)["digest"]
        for name, world_size, more in (
            ("resident", 1, {}),
            ("streamed", 2, {"data.storage": "streamed"}),
            ("two workers", 1, {"data.storage": "streamed", "data.workers": 2}),
            ("small buckets", 2, {"reduction.bucket_mib": 0.05}),
        )
    }
    assert len(set(digests.values())) == 1, digests


def test_another_seed_recipe_or_number_of_replicas_is_another_model(tmp_path: Path) -> None:
    digests = [
        run_once(1, tmp_path / str(number), {"model.name": "mlp", "train_for": "2 steps"} | more)["digest"]
        for number, more in enumerate(
            ({}, {"seed": 1}, {"optimizer.momentum": 0.8}, {"replicas": 4, "per_replica_batch_size": 4})
        )
    ]
    assert len(set(digests)) == 4


def test_the_digest_covers_weights_buffers_averages_optimizer_scale_and_history(tmp_path: Path) -> None:
    from unisono.train.digest import digest_of

    run_once(2, tmp_path / "run", {"train_for": "2 steps", "ema.decay": 0.9})
    payload = read_whole(tmp_path / "run" / "checkpoints" / "step_2.pt")
    whole = digest_of(payload)
    for path in (
        ("model", "conv1.weight"),
        ("replica_buffers", "bn1.running_mean"),
        ("optimizer", 0, "momentum_buffer"),
        ("ema",),
        ("state", "loss_history"),
        ("state", "evaluations"),
        ("loss_scale",),
    ):
        place = payload
        for key in path[:-1]:
            place = place[key]
        before, place[path[-1]] = place[path[-1]], None
        assert digest_of(payload) != whole or before is None, path
        place[path[-1]] = before
    assert digest_of(payload) == whole
