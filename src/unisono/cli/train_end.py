"""How `unisono train` ends: restarts told, a stop told, the failure screen."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unisono.cli import render
from unisono.errors import ExitCode

if TYPE_CHECKING:
    from unisono.job.launch import LaunchRequest, LaunchResult


def conclude(request: LaunchRequest, result: LaunchResult, options: dict[str, Any]) -> ExitCode:
    """Tell how a launched job ended; its exit code."""
    from unisono.train.run_folder import read_summary

    if result.ok:
        return ExitCode.STOPPED if read_summary(request.run_dir).get("stopped") else ExitCode.OK
    if result.signal is not None:
        render.note(
            f"stopped by a signal; `unisono train {options['recipe']} --run-dir {request.run_dir}` with the same options goes on"
        )
        return ExitCode.STOPPED
    assert result.failure is not None
    (request.run_dir / "failure.json").write_text(json.dumps(asdict(result.failure), indent=2), encoding="utf-8")
    failure_screen(request.run_dir, result)
    return ExitCode.CRASHED


def failure_screen(run_dir: Path, result: LaunchResult) -> None:
    """The first failing rank's own error, and what `unisono explain` makes of it."""
    failure = result.failure
    assert failure is not None
    how = failure.signal or (f"exit code {failure.exit_code}" if failure.exit_code is not None else "an error")
    render.note(
        f"rank {failure.rank} failed first, in {failure.phase} of step {failure.step} ({how}), after {result.restarts} restarts"
    )
    for text in (failure.traceback or failure.message).rstrip().splitlines()[-25:]:
        render.note(f"  | {text}")
    from unisono.cli.explain import explain_run

    for text in explain_run(run_dir):
        render.note(text)
    render.note(f"logs of all ranks: {run_dir / 'logs'}")


def first_line(text: str) -> str:
    """The first line of a message that has one."""
    return text.strip().splitlines()[0] if text.strip() else "no message"
