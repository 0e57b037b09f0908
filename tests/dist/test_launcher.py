"""The launcher with programs of a line in place of ranks."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from unisono.errors import UserError
from unisono.job.launch import LaunchRequest, launch

pytestmark = [pytest.mark.dist, pytest.mark.timeout(60)]

TELL = """
import os, pathlib
from unisono.job.launch import assigned_device, read_worker_environment
given = read_worker_environment()
rank = int(os.environ["RANK"])
told = [given.control_dir.is_dir(), given.attempt, assigned_device(rank), os.environ["OMP_NUM_THREADS"], os.environ["EXTRA"]]
(given.run_dir / f"told_{rank}").write_text(repr(told))
"""


def test_ranks_are_told_their_surroundings_and_the_caller_finds_its_own_environment_again(tmp_path: Path) -> None:
    before = dict(os.environ)
    command = [sys.executable, "-c", TELL]
    request = LaunchRequest(command=command, devices=2, run_dir=tmp_path, threads=3, environment={"EXTRA": "yes"})
    result = launch(request)
    assert (result.ok, result.restarts, result.devices) == (True, 0, 2)
    assert dict(os.environ) == before
    for rank in range(2):
        assert (tmp_path / f"told_{rank}").read_text() == repr([True, 0, rank, "3", "yes"])


def test_a_program_that_always_dies_is_tried_as_often_as_asked_and_the_environment_is_restored(tmp_path: Path) -> None:
    before = dict(os.environ)
    command = [sys.executable, "-c", "raise SystemExit(9)"]
    result = launch(LaunchRequest(command=command, devices=1, run_dir=tmp_path, threads=1, max_restarts=1))
    assert (result.ok, result.restarts, [failure.exit_code for failure in result.failures]) == (False, 1, [9, 9])
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("endpoint", "code"),
    [("", "J207"), ("first", "J207"), ("first:", "J207"), ("first:99999", "J207"), ("nowhere.invalid:29500", "J205")],
)
def test_a_meeting_place_that_cannot_be_is_refused_at_once(endpoint: str, code: str, tmp_path: Path) -> None:
    request = LaunchRequest(
        command=["true"], devices=1, run_dir=tmp_path, threads=1, nodes=(1, 2), rdzv_endpoint=endpoint
    )
    with pytest.raises(UserError) as caught:
        launch(request)
    assert caught.value.code == code
