"""Law 3: whatever happens to a rank, the run ends in the undisturbed run's bytes. Law 8: the first failing rank is named."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path

import pytest
from helpers.forked import ForkedJob, launch_forked
from helpers.launching import (
    processes_of,
    recipe_file,
    start_command,
    stop,
    summary_of,
    wait_for_line,
    wait_until_gone,
)

from unisono.errors import UserError
from unisono.train.checkpoint import newest_whole

pytestmark = [pytest.mark.faults, pytest.mark.dist, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the run that nothing happens to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert launch_forked(folder, devices=1).ok
    return str(summary_of(folder)["digest"])


def test_a_rank_that_has_done_its_work_ends_before_destructors_can_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os\nif 'TORCHELASTIC_RUN_ID' in os.environ:\n    atexit.register(os.abort)\n", encoding="utf-8"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    job = start_command(tmp_path, "--json")
    output, _ = job.communicate(timeout=120)
    assert job.returncode == 0, output
    assert output.count('"digest"') == 1, output
    assert summary_of(tmp_path)["restarts"] == 0


@pytest.mark.parametrize(
    ("rank", "step", "phase", "kind"),
    [
        (0, 0, "start", "kill"),
        (1, 2, "data", "kill"),
        (1, 5, "forward", "kill"),
        (0, 7, "backward", "kill"),
        (1, 6, "reduce", "kill"),
        (0, 9, "update", "raise"),
        (1, 8, "evaluate", "kill"),
        (0, 8, "save", "kill"),
        (1, 10, "save", "kill"),
        (0, 12, "save", "exit"),
    ],
)
def test_a_rank_that_dies_costs_time_and_no_byte(
    rank: int, step: int, phase: str, kind: str, undisturbed: str, tmp_path: Path
) -> None:
    result = launch_forked(tmp_path, "--fault", f"rank={rank},step={step},phase={phase},kind={kind}")
    assert (result.ok, result.restarts) == (True, 1)
    [failure] = result.failures
    assert (failure.rank, failure.phase) == (rank, phase), failure
    summary = summary_of(tmp_path)
    assert summary["digest"] == undisturbed
    # Ranks and launcher agree on what it cost.
    assert (summary["restarts"], summary["seconds_lost"]) == (1, pytest.approx(result.seconds_lost))
    assert result.seconds_lost > 0


def test_three_failures_of_different_ranks_are_survived_and_a_fourth_ends_the_run(tmp_path: Path) -> None:
    faults = [
        word
        for attempt, (rank, step) in enumerate([(2, 3), (0, 5), (1, 8), (2, 9)])
        for word in ("--fault", f"rank={rank},step={step},phase=backward,kind=kill,attempt={attempt}")
    ]
    result = launch_forked(tmp_path, *faults, devices=3, max_restarts=3)
    assert (result.ok, result.restarts) == (False, 3)
    assert [failure.rank for failure in result.failures] == [2, 0, 1, 2]
    assert result.failure is not None
    assert result.failure.step == 9
    # What was reached is kept.
    found = newest_whole(tmp_path / "run" / "checkpoints")
    assert found is not None
    assert found[1]["state"]["step"] == 8


@pytest.mark.parametrize(
    ("rank", "step", "phase", "kind"),
    [(1, 5, "forward", "hang"), (1, 4, "evaluate", "hang"), (0, 6, "save", "hang"), (1, 5, "reduce", "stop")],
)
def test_a_rank_that_hangs_is_named_within_the_limit_and_the_run_goes_on(
    rank: int, step: int, phase: str, kind: str, undisturbed: str, tmp_path: Path
) -> None:
    result = launch_forked(tmp_path, "--fault", f"rank={rank},step={step},phase={phase},kind={kind}", hang_timeout_s=6)
    assert (result.ok, result.restarts) == (True, 1)
    [failure] = result.failures
    assert (failure.rank, failure.phase, failure.step) == (rank, phase, step)
    assert "no sign of life" in failure.message
    assert ("faults.py" in failure.message) == (kind == "hang")
    assert summary_of(tmp_path)["digest"] == undisturbed


def test_law_8_a_rank_that_raises_ends_the_run_with_its_own_traceback(tmp_path: Path) -> None:
    process = start_command(tmp_path, "--max-restarts", "0", "--fault", "rank=1,step=3,phase=backward,kind=raise")
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 3
    assert "rank 1 failed first, in backward of step 3" in output
    assert "InjectedFaultError: injected: this rank raises" in output
    assert "Connection closed by peer" not in output.split("rank 1 failed first")[0]
    assert json.loads((tmp_path / "run" / "failure.json").read_text(encoding="utf-8"))["rank"] == 1
    assert wait_until_gone(tmp_path) == []


@pytest.mark.parametrize(
    ("rank", "step", "phase", "kind"),
    [(1, 4, "forward", "sigterm"), (0, 4, "evaluate", "sigint"), (1, 0, "data", "sigterm"), (0, 6, "save", "sigterm")],
)
def test_a_signal_to_one_rank_stops_all_with_one_checkpoint_and_the_rest_gives_the_same_bytes(
    rank: int, step: int, phase: str, kind: str, undisturbed: str, tmp_path: Path
) -> None:
    result = launch_forked(tmp_path, "--fault", f"rank={rank},step={step},phase={phase},kind={kind}")
    assert (result.ok, result.restarts) == (True, 0)
    stopped = summary_of(tmp_path)
    assert stopped["stopped"]
    assert stopped["steps"] <= step + 2
    found = newest_whole(tmp_path / "run" / "checkpoints")
    assert found is not None
    assert found[1]["state"]["step"] == stopped["steps"]
    assert launch_forked(tmp_path, devices=3).ok
    assert summary_of(tmp_path)["digest"] == undisturbed


@pytest.mark.parametrize(
    ("phase", "step", "numbers"),
    [("forward", 5, [signal.SIGTERM, signal.SIGTERM]), ("evaluate", 4, [signal.SIGINT]), ("data", 0, [signal.SIGTERM])],
    ids=["twice", "during evaluation", "before the first step"],
)
def test_a_signal_to_the_launcher_is_one_checkpoint_of_all_ranks(
    phase: str, step: int, numbers: list[signal.Signals], undisturbed: str, tmp_path: Path
) -> None:
    # A slow rank keeps the others waiting, so that the signal comes in the phase it is meant for.
    job = ForkedJob(tmp_path, "--fault", f"rank=1,step={step},phase={phase},kind=slow")
    try:
        job.wait_for_log(1, "injected: slow")
        for number in numbers:
            job.signal(number)
        result = job.answer()
        assert result.signal == numbers[0]
        assert job.left_behind() == []
    finally:
        job.kill()
    stopped = summary_of(tmp_path)
    assert stopped["stopped"]
    found = newest_whole(tmp_path / "run" / "checkpoints")
    assert found is not None
    assert found[1]["state"]["step"] == stopped["steps"] <= step + 2
    assert launch_forked(tmp_path).ok
    assert summary_of(tmp_path)["digest"] == undisturbed


def test_a_signal_to_the_command_saves_and_ends_with_4_within_30_seconds_even_when_repeated(tmp_path: Path) -> None:
    recipe_file(tmp_path)
    process = start_command(tmp_path, "--steps", "100000")
    wait_for_line(process, "step 3/")
    process.send_signal(signal.SIGTERM)
    code, output, seconds = stop(process, signal.SIGINT)
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


def test_loader_processes_of_a_killed_rank_do_not_stay_and_the_bytes_are_the_same(tmp_path: Path) -> None:
    loading = ("--set", "data.storage=streamed", "--workers", "1", "--set", "augment.auto_augment=original-mstd0.5")
    assert launch_forked(tmp_path / "whole", *loading).ok
    result = launch_forked(tmp_path / "hit", *loading, "--fault", "rank=1,step=5,phase=forward,kind=kill")
    assert (result.ok, result.restarts) == (True, 1)
    assert summary_of(tmp_path / "hit")["digest"] == summary_of(tmp_path / "whole")["digest"]


def test_the_port_is_free_again_after_a_failure(tmp_path: Path) -> None:
    job = ForkedJob(tmp_path, "--fault", "rank=1,step=4,phase=forward,kind=slow", max_restarts=0)
    try:
        job.wait_for_log(1, "injected: slow")
        ports = job.listening()
        assert ports
        job.signal(signal.SIGKILL)
        assert job.left_behind() == []
    finally:
        job.kill()
    # As the next job's store would; the kernel may take a moment to forget the dead job's connections.
    deadline = time.monotonic() + 20
    while taken := [port for port in ports if not can_listen(port)]:
        assert time.monotonic() < deadline, f"still taken: {taken} of {ports}"
        time.sleep(0.1)


def can_listen(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen()
        except OSError:
            return False
        return True


def test_elastic_goes_on_without_a_device_that_fails_for_good_and_keeps_the_bytes(
    undisturbed: str, tmp_path: Path
) -> None:
    fault = "device=5,step=3,phase=forward,kind=kill"
    result = launch_forked(tmp_path, "--fault", fault, devices=8, max_restarts=3, elastic=True)
    assert (result.ok, result.restarts, result.devices) == (True, 2, 7)
    summary = summary_of(tmp_path)
    assert (summary["world_size"], summary["global_batch_size"]) == (7, 16)
    assert summary["digest"] == undisturbed


def test_an_error_that_no_restart_can_mend_is_told_once_and_not_retried(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        launch_forked(tmp_path, "--model", "resnet51")
    assert caught.value.code == "M101"
    assert not list((tmp_path / "run" / "checkpoints").glob("*.pt"))
    assert "attempt 1" not in (tmp_path / "run" / "logs" / "rank_0.log").read_text(encoding="utf-8")
