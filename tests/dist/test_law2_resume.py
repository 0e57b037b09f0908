"""Law 2: stop anywhere and go on, on any number of ranks: the same bytes as never having stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.ranks import run_ranks
from helpers.reading import digest_seen
from helpers.training import train_keywords

from unisono.errors import UserError
from unisono.train.checkpoint import read_whole
from unisono.train.digest import digest_of

pytestmark = pytest.mark.dist

# Four steps an epoch; an overflow at the start, so that positions and steps are not the same.
CHANGES: dict[str, Any] = {
    "model.name": "mlp",
    "ema.decay": 0.9,
    "augment.horizontal_flip": 0.5,
    "augment.mixup_alpha": 1.0,
    "schedule.name": "cosine",
    "precision.compute": "fp16",
    "precision.initial_loss_scale": 2.0**26,
    "precision.loss_scale_growth_interval": 3,
    "non_finite_limit": 50,
    "train_for": "6 steps",
}


def run_once(world_size: int, folder: Path, changes: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    summary: dict[str, Any] = run_ranks(world_size, train_keywords, str(folder), changes, keywords, timeout_s=110)[0]
    return summary


def alone(folder: Path, changes: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    """One rank in this process."""
    torch.set_num_threads(1)
    return train_keywords(0, 1, str(folder), changes, keywords)


def records(folder: Path) -> list[dict[str, Any]]:
    """Records without what the clock says."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{k: v for k, v in row.items() if k not in ("images_per_second", "step_time_ms")} for row in rows]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    summary = run_once(1, folder, CHANGES)
    assert summary["skipped_steps"] > 0
    return folder


@pytest.mark.parametrize(
    ("stop_after", "first_world", "second_world"),
    [(1, 1, 3), (3, 2, 1), (4, 4, 2), (5, 2, 7)],
    ids=["first step", "mid-epoch", "end of an epoch", "last but one"],
)
def test_stopping_anywhere_and_going_on_with_other_devices_changes_no_byte(
    stop_after: int, first_world: int, second_world: int, whole: Path, tmp_path: Path
) -> None:
    stopped = run_once(first_world, tmp_path / "cut", CHANGES, stop_after=stop_after)
    assert (stopped["stopped"], stopped["steps"]) == (True, stop_after)
    ended = run_once(second_world, tmp_path / "cut", CHANGES)
    assert (ended["stopped"], ended["steps"]) == (False, 6)
    last = "checkpoints/step_6.pt"
    assert (tmp_path / "cut" / last).read_bytes() == (whole / last).read_bytes()


def test_best_metric_scale_history_and_records_go_on(whole: Path, tmp_path: Path) -> None:
    for stop_after in (2, 3, 5, None):
        alone(tmp_path / "run", CHANGES, stop_after=stop_after)
    a, b = (read_whole(folder / "checkpoints" / "last.pt") for folder in (whole, tmp_path / "run"))
    assert a["state"] == b["state"]
    assert [step for step, _ in b["state"]["loss_history"]] == [1, 2, 3, 4, 5, 6]
    assert [row["step"] for row in b["state"]["evaluations"]] == [3, 6]
    assert b["state"]["best_step"] in (3, 6)
    assert a["loss_scale"] == b["loss_scale"]
    assert records(tmp_path / "run") == records(whole)


def test_a_run_that_is_whole_already_changes_nothing_and_says_the_same_digest(tmp_path: Path) -> None:
    first = alone(tmp_path / "run", CHANGES)
    file = tmp_path / "run" / "checkpoints" / "step_6.pt"
    before = file.read_bytes()
    again = alone(tmp_path / "run", CHANGES)
    assert again["digest"] == first["digest"]
    assert file.read_bytes() == before


def test_machines_without_a_shared_file_system_go_on_from_the_first_ones_checkpoint(whole: Path) -> None:
    newest = whole / "checkpoints" / "last.pt"
    assert run_ranks(3, digest_seen, str(newest)) == [digest_of(read_whole(newest))] * 3


def test_steps_behind_are_skipped_without_decoding_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import unisono.data.maker as maker

    changes = {
        "model.name": "mlp",
        "augment.auto_augment": "original-mstd0.5",
        "data.storage": "streamed",
        "train_for": "6 steps",
        "evaluate.every": "0 steps",
    }
    decoded: list[int] = []
    real = maker.augment_train

    def counting(*given: Any, index: int, **named: Any) -> Any:
        decoded.append(index)
        return real(*given, index=index, **named)

    monkeypatch.setattr(maker, "augment_train", counting)
    whole = alone(tmp_path / "whole", changes)
    all_images = len(decoded)
    assert all_images == 6 * 16
    alone(tmp_path / "cut", changes, stop_after=5)
    decoded.clear()
    ended = alone(tmp_path / "cut", changes)
    assert len(decoded) == 16
    assert ended["digest"] == whole["digest"]


def test_a_checkpoint_of_another_folder_starts_a_run_of_its_own(whole: Path, tmp_path: Path) -> None:
    alone(tmp_path / "first", CHANGES, stop_after=4)
    named = str(tmp_path / "first" / "checkpoints" / "step_4.pt")
    ended = run_once(2, tmp_path / "second", CHANGES, resume=named)
    assert (tmp_path / "second" / "checkpoints" / "step_6.pt").read_bytes() == (
        whole / "checkpoints" / "step_6.pt"
    ).read_bytes()
    assert ended["steps"] == 6
    assert not (tmp_path / "first" / "checkpoints" / "step_6.pt").exists()


def test_another_recipe_is_refused_by_key_on_every_rank_and_can_be_allowed(tmp_path: Path) -> None:
    alone(tmp_path / "run", CHANGES, stop_after=2)
    changed = CHANGES | {"optimizer.momentum": 0.5, "seed": 3}
    with pytest.raises(UserError) as caught:
        alone(tmp_path / "run", changed)
    assert caught.value.code == "C202"
    assert "optimizer.momentum: 0.9 there, 0.5 here" in caught.value.why
    assert "seed: 0 there, 3 here" in caught.value.why
    assert "--allow-changed optimizer.momentum --allow-changed seed" in caught.value.fix
    with pytest.raises(UserError) as caught:
        alone(tmp_path / "run", changed, allow_changed=("seed",))
    assert "seed" not in caught.value.why
    ended = alone(tmp_path / "run", changed, allow_changed=("seed", "optimizer"))
    assert ended["steps"] == 6


def test_what_only_moves_work_about_may_change(whole: Path, tmp_path: Path) -> None:
    alone(tmp_path / "run", CHANGES, stop_after=3)
    moved = {"data.storage": "streamed", "checkpoint.every": "1 steps", "reduction.bucket_mib": 0.01}
    alone(tmp_path / "run", CHANGES | moved)
    assert (tmp_path / "run" / "checkpoints" / "step_6.pt").read_bytes() == (
        whole / "checkpoints" / "step_6.pt"
    ).read_bytes()


@pytest.mark.parametrize("condition", ["threads", "torch", "device"])
def test_going_on_where_exactness_ends_warns_and_stays_on_record(
    condition: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    alone(tmp_path / "run", CHANGES, stop_after=2)
    manifest = tmp_path / "run" / "manifest.json"
    made_with = json.loads(manifest.read_text(encoding="utf-8"))
    if condition == "threads":
        made_with["threads"] = 7
    elif condition == "torch":
        made_with["packages"]["torch"] = "1.0"
    else:
        made_with["platform"] = "npu"
    manifest.write_text(json.dumps(made_with), encoding="utf-8")
    said = alone(tmp_path / "run", CHANGES, stop_after=4, tell=True)["said"]
    [warning] = [text for text in said if text.startswith("warning: ")]
    expected = {"threads": "threads a process: 7 and 1", "torch": "torch: 1.0 and ", "device": "platform: npu and cpu"}
    assert expected[condition] in warning
    assert len(json.loads(manifest.read_text(encoding="utf-8"))["earlier_grounds"]) == 1
    # On the same ground as last time there is nothing to warn of, and the record stays.
    assert not [text for text in alone(tmp_path / "run", CHANGES, tell=True)["said"] if "warning" in text]
    assert len(json.loads(manifest.read_text(encoding="utf-8"))["earlier_grounds"]) == 1
