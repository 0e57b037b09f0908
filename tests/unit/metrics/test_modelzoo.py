"""The model zoo's final block and `<CaseName>.log`: names, order and figures that harnesses parse."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest

from unisono.errors import UserError
from unisono.metrics.modelzoo import final_block, log_values, write_modelzoo_log

KEYS = [
    "Network",
    "RankSize",
    "BatchSize",
    "DeviceType",
    "CaseName",
    "ActualFPS",
    "TrainingTime",
    "TrainAccuracy",
    "ActualLoss",
    "E2ETrainingTime",
]


def summary(**changes: Any) -> dict[str, Any]:
    return {
        "recipe": "resnet50_cifar100",
        "run_dir": "runs/resnet50_cifar100/now",
        "stopped": False,
        "simulated": False,
        "steps": 390,
        "world_size": 8,
        "global_batch_size": 128,
        "images_per_second": 1523.456,
        "best_top1_accuracy": 0.7990,
        "train_loss": 0.012345,
        "total_s": 6566.4,
    } | changes


def test_the_log_has_the_ten_keys_in_their_order() -> None:
    values = log_values(summary(), network="Resnet50_cifar_for_PyTorch")
    assert list(values) == KEYS
    assert values == {
        "Network": "Resnet50_cifar_for_PyTorch",
        "RankSize": "8",
        "BatchSize": "128",
        "DeviceType": platform.machine(),
        "CaseName": "Resnet50_cifar_for_PyTorch_bs128_8p_acc",
        "ActualFPS": "1523.46",
        # 128 images at 1523.456 a second.
        "TrainingTime": "84.02",
        "TrainAccuracy": "79.90",
        "ActualLoss": "0.0123",
        "E2ETrainingTime": "6566",
    }


def test_the_file_has_a_key_a_line_and_the_block_comes_back(tmp_path: Path) -> None:
    lines = write_modelzoo_log(summary(), tmp_path / "output" / "0", case_name="X_bs128_8p_perf", network="X")
    text = (tmp_path / "output" / "0" / "X_bs128_8p_perf.log").read_text(encoding="utf-8")
    assert [line.split(" = ")[0] for line in text.splitlines()] == KEYS
    assert lines == final_block(summary())
    assert lines == [
        "------------------ Final result ------------------",
        "Final Performance images/sec : 1523.46",
        "Final Train Accuracy : 79.90",
        "E2E Training Duration sec : 6566",
    ]


def test_what_was_not_measured_is_na_and_never_a_number() -> None:
    values = log_values(summary(images_per_second=None, best_top1_accuracy=None, train_loss=None))
    unknown = [key for key, value in values.items() if value == "NA"]
    assert unknown == ["ActualFPS", "TrainingTime", "TrainAccuracy", "ActualLoss"]


def test_a_simulated_run_says_so() -> None:
    assert log_values(summary(simulated=True))["Simulated"] == "True"


def test_a_stopped_run_leaves_no_result_behind(tmp_path: Path) -> None:
    (line,) = write_modelzoo_log(summary(stopped=True), tmp_path)
    assert "step 390" in line
    assert list(tmp_path.iterdir()) == []


def test_a_name_with_a_slash_stays_in_its_folder(tmp_path: Path) -> None:
    write_modelzoo_log(summary(), tmp_path, case_name="a/b")
    assert [path.name for path in tmp_path.iterdir()] == ["a_b.log"]


def test_a_folder_that_cannot_be_written_is_a_coded_error_that_names_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match="C105") as caught:
        write_modelzoo_log(summary(), tmp_path / "file")
    assert "runs/resnet50_cifar100/now" in caught.value.why
