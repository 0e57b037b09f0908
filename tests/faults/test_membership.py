"""Law 3 on several machines, `--nnodes MIN:MAX`: each machine is a launcher of its own; they share a run folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.forked import ForkedJob, launch_forked
from helpers.launching import summary_of

from unisono.job.launch import free_port

pytestmark = [pytest.mark.faults, pytest.mark.dist, pytest.mark.timeout(180)]

StartMachine = Callable[..., ForkedJob]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the run that nothing happens to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert launch_forked(folder, devices=1).ok
    return str(summary_of(folder)["digest"])


@pytest.fixture
def start_machine(tmp_path: Path) -> Iterator[StartMachine]:
    """Starts one of one or two machines with two devices each; all are ended after the test."""
    endpoint = f"127.0.0.1:{free_port()}"
    started: list[ForkedJob] = []

    def start(number: int, *more: str) -> ForkedJob:
        job = ForkedJob(
            tmp_path,
            *more,
            devices=2,
            node_rank=number,
            nodes=(1, 2),
            rdzv_endpoint=endpoint,
            max_restarts=3,
            hang_timeout_s=150,
        )
        started.append(job)
        return job

    yield start
    for job in started:
        job.kill()


def test_a_machine_that_is_lost_costs_time_and_no_byte(
    start_machine: StartMachine, undisturbed: str, tmp_path: Path
) -> None:
    slow = ("--fault", "rank=0,step=5,phase=forward,kind=slow,attempt=0")
    first, second = start_machine(0, *slow), start_machine(1, *slow)
    first.wait_for_log(0, "injected: slow")
    second.kill()
    result = first.answer()
    assert (result.ok, result.restarts) == (True, 1)
    summary = summary_of(tmp_path)
    assert (summary["digest"], summary["world_size"]) == (undisturbed, 2)
    assert summary["seconds_lost"] > 0
    assert first.left_behind() == []


def test_a_machine_that_joins_later_is_taken_in_and_the_bytes_are_the_same(
    start_machine: StartMachine, undisturbed: str, tmp_path: Path
) -> None:
    # The rank that hangs gives the other machine the time to come; only then would it be missed.
    first = start_machine(0, "--fault", "rank=0,step=5,phase=forward,kind=hang,attempt=0")
    first.wait_for_log(0, "injected: hang")
    second = start_machine(1)
    assert first.answer().ok
    assert second.answer().ok
    summary = summary_of(tmp_path)
    assert (summary["digest"], summary["world_size"]) == (undisturbed, 4)
    plans = (tmp_path / "output.txt").read_text(encoding="utf-8")
    assert plans.index("on 2 devices") < plans.index("resumed from step_4.pt")
    assert plans.index("on 2 devices") < plans.index("on 4 devices")
