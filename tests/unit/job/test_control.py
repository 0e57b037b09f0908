"""What ranks tell their launcher."""

from __future__ import annotations

from pathlib import Path

import pytest

from unisono.errors import UserError
from unisono.job.control import Failure, Heartbeat, first_failure, read_beats, read_failures, record_failure


def test_a_heartbeat_is_read_back_with_step_and_phase(tmp_path: Path) -> None:
    for rank in (1, 0):
        Heartbeat(tmp_path, rank).beat(7 + rank, "backward")
    assert [(beat.rank, beat.step, beat.phase) for beat in read_beats(tmp_path)] == [(0, 7, "backward"), (1, 8, "backward")]


def test_ranks_are_ordered_by_how_far_they_are(tmp_path: Path) -> None:
    for rank, (step, phase) in enumerate([(7, "reduce"), (7, "forward"), (8, "data")]):
        Heartbeat(tmp_path, rank).beat(step, phase)
    assert min(read_beats(tmp_path), key=lambda beat: beat.progress).rank == 1


def test_a_recorded_failure_keeps_its_traceback_and_its_coded_error(tmp_path: Path) -> None:
    try:
        raise UserError("D101", "what", "why", "fix")
    except UserError as error:
        record_failure(tmp_path, error, rank=3, attempt=1, step=9, phase="data")
    [failure] = read_failures(tmp_path, 1)
    assert (failure.rank, failure.step, failure.phase) == (3, 9, "data")
    assert "test_control.py" in failure.traceback
    restored = failure.as_user_error()
    assert restored is not None
    assert (restored.code, restored.what, restored.why, restored.fix) == ("D101", "what", "why", "fix")
    assert read_failures(tmp_path, 0) == []


@pytest.mark.parametrize("text", ["Connection closed by peer [127.0.0.1]:3", "Timed out waiting 1000ms for recv", "EI0006 socket"])
def test_a_rank_that_lost_its_peer_is_collateral_and_never_named_first(tmp_path: Path, text: str) -> None:
    collateral = record_failure(tmp_path, RuntimeError(text), rank=0, attempt=0, step=1, phase="reduce")
    assert collateral.collateral
    own = Failure(rank=2, time=collateral.time + 5, signal="SIGKILL")
    assert first_failure([collateral, own]) is own


def test_of_several_own_failures_the_earliest_is_named() -> None:
    late, early = Failure(rank=0, time=9.0), Failure(rank=5, time=8.0)
    assert first_failure([late, early]) is early
    assert first_failure([]) is None
