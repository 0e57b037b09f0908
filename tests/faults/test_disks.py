"""Law 7 on real file systems: full, read-only, damaged."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.forked import ForkedJob, launch_forked
from helpers.launching import summary_of

from unisono.errors import UserError
from unisono.train.checkpoint import newest_whole, numbered_checkpoints

pytestmark = [pytest.mark.faults, pytest.mark.dist, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the run that nothing happens to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert launch_forked(folder, devices=1).ok
    return str(summary_of(folder)["digest"])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A run folder of 48 MiB in memory; skips where mounting is not allowed."""
    folder = tmp_path / "run"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(folder)], capture_output=True)
    if done.returncode:
        pytest.skip(f"cannot mount a small file system here: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Leave no byte free."""
    with open(folder / "filler", "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            return


def run_until_slow_then(act: object, tmp_path: Path, *more: str) -> ForkedJob:
    """Start a run that waits in step 5, do something to its disk there, and let it go on."""
    job = ForkedJob(tmp_path, "--fault", "rank=1,step=5,phase=forward,kind=slow", *more, max_restarts=1)
    job.wait_for_log(1, "injected: slow")
    assert callable(act)
    act()
    return job


def test_a_disk_that_fills_up_costs_checkpoints_and_the_end_is_told(
    small_disk: Path, undisturbed: str, tmp_path: Path
) -> None:
    job = run_until_slow_then(lambda: fill(small_disk), tmp_path)
    try:
        with pytest.raises(UserError) as caught:
            job.answer()
        assert caught.value.code == "C109"
        assert job.left_behind() == []
    finally:
        job.kill()
    found = newest_whole(small_disk / "checkpoints")
    assert found is not None
    assert found[1]["state"]["step"] == 4
    assert not list((small_disk / "checkpoints").glob("*.tmp"))
    (small_disk / "filler").unlink()
    assert launch_forked(tmp_path).ok
    assert summary_of(tmp_path)["digest"] == undisturbed


def test_a_disk_that_is_full_for_a_while_costs_no_step(small_disk: Path, undisturbed: str, tmp_path: Path) -> None:
    later = ("--fault", "rank=1,step=9,phase=forward,kind=slow")
    job = run_until_slow_then(lambda: fill(small_disk), tmp_path, *later)
    try:
        job.wait_for_output("checkpoint of step 8 not written")
        (small_disk / "filler").unlink()
        result = job.answer()
    finally:
        job.kill()
    assert (result.ok, result.restarts) == (True, 0)
    summary = summary_of(tmp_path)
    assert summary["failed_checkpoint_writes"] >= 1
    assert summary["digest"] == undisturbed


def test_a_disk_too_small_or_read_only_is_refused_before_the_first_step(small_disk: Path, tmp_path: Path) -> None:
    fill(small_disk)
    with pytest.raises(UserError) as caught:
        launch_forked(tmp_path)
    assert caught.value.code == "C104"
    (small_disk / "filler").unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(UserError) as caught:
        launch_forked(tmp_path)
    assert caught.value.code == "C105"


def test_damaged_newest_checkpoints_are_passed_over_and_the_bytes_are_the_same(
    undisturbed: str, tmp_path: Path
) -> None:
    launch_forked(tmp_path, "--fault", "rank=0,step=10,phase=forward,kind=sigterm")
    newest, before, older = numbered_checkpoints(tmp_path / "run" / "checkpoints")[:3]
    assert newest.name > "step_10"
    assert before.name == "step_10.pt"
    assert older.name == "step_8.pt"
    newest.write_bytes(newest.read_bytes()[:-100])
    flipped = bytearray(before.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    before.write_bytes(flipped)
    assert launch_forked(tmp_path).ok
    assert summary_of(tmp_path)["digest"] == undisturbed
    log = (tmp_path / "run" / "logs" / "rank_0.log").read_text(encoding="utf-8")
    assert f"passing over {newest.name}" in log
    assert f"passing over {before.name}" in log
