"""Law 3: whatever happens to a rank, the run ends in the undisturbed run's bytes. Law 8: the first failing rank is named."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from helpers.launching import (
    launch_run,
    processes_of,
    recipe_file,
    start_command,
    stop,
    summary_of,
    wait_for_line,
    wait_until_gone,
)

from unisono.train.checkpoint import newest_whole

pytestmark = [pytest.mark.faults, pytest.mark.dist, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the same recipe on one device, when nothing happens to it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert launch_run(folder, devices=1).ok
    return str(summary_of(folder)["digest"])


@pytest.mark.parametrize(
    ("rank", "step", "phase", "kind"),
    [
        (1, 5, "forward", "kill"),
        (0, 7, "backward", "kill"),
        (1, 6, "reduce", "kill"),
        (1, 8, "evaluate", "kill"),
        (0, 8, "save", "kill"),
        (0, 0, "start", "kill"),
        (1, 3, "backward", "exit"),
        (0, 9, "update", "raise"),
    ],
)
def test_law_3_a_rank_that_dies_costs_time_and_no_byte(
    rank: int, step: int, phase: str, kind: str, undisturbed: str, tmp_path: Path
) -> None:
    result = launch_run(tmp_path, "--fault", f"rank={rank},step={step},phase={phase},kind={kind}")
    assert (result.ok, result.restarts) == (True, 1)
    [failure] = result.failures
    assert failure.rank == rank, failure
    assert summary_of(tmp_path)["digest"] == undisturbed
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize("kind", ["hang", "stop"])
def test_a_rank_that_hangs_is_named_within_the_limit_and_the_run_goes_on(
    kind: str, undisturbed: str, tmp_path: Path
) -> None:
    result = launch_run(tmp_path, "--fault", f"rank=1,step=5,phase=forward,kind={kind}", hang_timeout_s=6)
    assert (result.ok, result.restarts) == (True, 1)
    [failure] = result.failures
    assert (failure.rank, failure.phase, failure.step) == (1, "forward", 5)
    assert "no sign of life" in failure.message
    if kind == "hang":
        assert "faults.py" in failure.message
    assert summary_of(tmp_path)["digest"] == undisturbed


def test_law_8_a_rank_that_raises_ends_the_run_with_its_own_traceback(tmp_path: Path) -> None:
    process = start_command(tmp_path, "--max-restarts", "0", "--fault", "rank=1,step=3,phase=backward,kind=raise")
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 3
    assert "rank 1 failed first, in backward of step 3" in output
    assert "InjectedFaultError: injected: this rank raises" in output
    assert "Connection closed by peer" not in output.split("rank 1 failed first")[0]
    assert wait_until_gone(tmp_path) == []


@pytest.mark.parametrize(("rank", "phase", "kind"), [(1, "forward", "sigterm"), (0, "evaluate", "sigint")])
def test_a_signal_to_one_rank_stops_all_with_one_checkpoint_and_the_rest_gives_the_same_bytes(
    rank: int, phase: str, kind: str, undisturbed: str, tmp_path: Path
) -> None:
    result = launch_run(tmp_path, "--fault", f"rank={rank},step=4,phase={phase},kind={kind}")
    assert result.ok
    stopped = summary_of(tmp_path)
    assert stopped["stopped"]
    found = newest_whole(tmp_path / "run" / "checkpoints")
    assert found is not None
    assert found[1]["state"]["step"] == stopped["steps"]
    assert launch_run(tmp_path).ok
    assert summary_of(tmp_path)["digest"] == undisturbed


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_launcher_saves_once_and_ends_with_4_even_when_repeated(
    number: signal.Signals, tmp_path: Path
) -> None:
    recipe_file(tmp_path)
    process = start_command(tmp_path, "--steps", "100000")
    wait_for_line(process, "step 3/")
    process.send_signal(number)
    code, output, seconds = stop(process, number)
    assert code == 4, output
    assert seconds < 30
    found = newest_whole(tmp_path / "run" / "checkpoints")
    assert found is not None
    assert found[1]["state"]["step"] == summary_of(tmp_path)["steps"]
    assert wait_until_gone(tmp_path) == []


def test_no_rank_outlives_a_launcher_that_is_killed(tmp_path: Path) -> None:
    process = start_command(tmp_path, "--steps", "100000")
    wait_for_line(process, "step 3/")
    assert len(processes_of(tmp_path)) == 3
    process.kill()
    process.wait()
    assert wait_until_gone(tmp_path) == []


def test_elastic_goes_on_without_a_device_that_fails_for_good_and_keeps_the_bytes(
    undisturbed: str, tmp_path: Path
) -> None:
    result = launch_run(
        tmp_path, "--fault", "device=1,step=3,phase=forward,kind=kill", devices=3, max_restarts=3, elastic=True
    )
    assert (result.ok, result.restarts, result.devices) == (True, 2, 2)
    assert summary_of(tmp_path)["digest"] == undisturbed


def test_an_error_that_no_restart_can_mend_is_told_once_and_not_retried(tmp_path: Path) -> None:
    process = start_command(tmp_path, "--model", "resnet51")
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 2
    assert output.count("error M101") == 1
    assert "restart" not in output
    assert "Traceback" not in output
