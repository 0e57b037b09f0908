"""A run's summary in the form that the Ascend model zoo's scripts end with, for harnesses that parse it.

Source of names and layout: the `test/train_*_8p.sh` scripts of ModelZoo-PyTorch, snapshot of 2023-12-15. Here the
figures come from the run itself, not from its log, so the loss is never blank and the speed never cut to a whole number.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unisono.errors import ExitCode, UserError

_UNKNOWN = "NA"


def write_modelzoo_log(
    summary: Mapping[str, Any], folder: Path, *, case_name: str | None = None, network: str | None = None
) -> list[str]:
    """Write `<CaseName>.log` into a folder; returns the lines of the final block, for the console.

    A run that was stopped has no result yet, so nothing is written.

    Raises:
        UserError: C105 the file cannot be written.
    """
    if summary.get("stopped"):
        return [f"stopped at step {summary['steps']}: no final result yet; the same command with --resume auto goes on"]
    values = log_values(summary, case_name=case_name, network=network)
    path = folder / f"{values['CaseName']}.log"
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary.write_text("".join(f"{key} = {value}\n" for key, value in values.items()), encoding="utf-8")
        temporary.rename(path)
    except OSError as error:
        raise UserError(
            "C105",
            f"cannot write {path}",
            f"{error.strerror or error}; the run itself is whole, in {summary['run_dir']}",
            "choose another folder with --modelzoo-log",
            exit_code=ExitCode.CRASHED,
        ) from error
    return final_block(summary)


def final_block(summary: Mapping[str, Any]) -> list[str]:
    """The four lines that a model zoo script prints last."""
    return [
        "------------------ Final result ------------------",
        f"Final Performance images/sec : {_number(summary['images_per_second'], 2)}",
        f"Final Train Accuracy : {_percent(summary['best_top1_accuracy'])}",
        f"E2E Training Duration sec : {summary['total_s']:.0f}",
    ]


def log_values(
    summary: Mapping[str, Any], *, case_name: str | None = None, network: str | None = None
) -> dict[str, str]:
    """The keys of `<CaseName>.log` in their order.

    BatchSize is global; ActualFPS is images a second over all devices, without the first steps, evaluation and saving
    (NA for a run too short to time); TrainingTime is milliseconds a step; TrainAccuracy is the best top-1 in per cent;
    E2ETrainingTime is seconds from start to summary. `Simulated` is added where the devices were.
    """
    batch, ranks = int(summary["global_batch_size"]), int(summary["world_size"])
    network = network or str(summary["recipe"])
    speed = summary["images_per_second"]
    values = {
        "Network": network,
        "RankSize": str(ranks),
        "BatchSize": str(batch),
        "DeviceType": platform.machine(),
        "CaseName": _file_name(case_name or f"{network}_bs{batch}_{ranks}p_acc"),
        "ActualFPS": _number(speed, 2),
        "TrainingTime": _number(batch * 1000 / speed if speed else None, 2),
        "TrainAccuracy": _percent(summary["best_top1_accuracy"]),
        "ActualLoss": _number(summary["train_loss"], 4),
        "E2ETrainingTime": f"{summary['total_s']:.0f}",
    }
    return values | ({"Simulated": "True"} if summary.get("simulated") else {})


def _number(value: float | None, digits: int) -> str:
    return _UNKNOWN if value is None else f"{value:.{digits}f}"


def _percent(share: float | None) -> str:
    return _number(None if share is None else share * 100, 2)


def _file_name(name: str) -> str:
    return name.replace(os.sep, "_")
