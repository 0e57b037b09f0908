"""Law 7: a checkpoint is whole or absent, and the newest whole one is found."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from unisono.errors import UserError
from unisono.train.checkpoint import CheckpointWriter, newest_whole, numbered_checkpoints, read_whole, write_whole
from unisono.train.digest import digest_of


def payload(step: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(step)
    return {
        "model": {"weight": torch.randn(40, 30, generator=generator), "count": torch.tensor(step)},
        "state": {"step": step, "history": [[1.0, 0.5]], "best": None, "flag": True},
        "optimizer": {
            "state": {0: {"momentum": torch.randn(40, generator=generator)}},
            "param_groups": [{"lr": 0.1, "betas": [0.9, 0.99]}],
        },
    }


def test_what_is_written_is_read_back_equal(tmp_path: Path) -> None:
    digest = write_whole(tmp_path / "step_1.pt", payload(1))
    restored = read_whole(tmp_path / "step_1.pt")
    assert digest_of(restored) == digest == digest_of(payload(1))
    assert restored["state"] == payload(1)["state"]


def test_the_file_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_whole(tmp_path / name / "step_1.pt", payload(1))
    assert (tmp_path / "a" / "step_1.pt").read_bytes() == (tmp_path / "b" / "step_1.pt").read_bytes()


def content_or_code(path: Path) -> str:
    """The digest of what is read, or the code of the refusal."""
    try:
        return digest_of(read_whole(path))
    except UserError as error:
        return error.code


@pytest.mark.parametrize("tenth", range(10))
def test_a_checkpoint_cut_at_every_tenth_is_passed_over_for_the_one_before(tenth: int, tmp_path: Path) -> None:
    for step in (9, 10):
        write_whole(tmp_path / f"step_{step}.pt", payload(step))
    whole = (tmp_path / "step_10.pt").read_bytes()
    (tmp_path / "step_10.pt").write_bytes(whole[: len(whole) * tenth // 10])
    with pytest.raises(UserError) as caught:
        read_whole(tmp_path / "step_10.pt")
    assert caught.value.code == "C102"
    found = newest_whole(tmp_path)
    assert found is not None
    assert found[0].name == "step_9.pt"


def test_one_flipped_bit_is_never_loaded_as_other_content(tmp_path: Path) -> None:
    write_whole(tmp_path / "step_1.pt", payload(1))
    whole = (tmp_path / "step_1.pt").read_bytes()
    refused = 0
    for position in range(0, len(whole), max(1, len(whole) // 150)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        (tmp_path / "step_1.pt").write_bytes(damaged)
        # A bit of the container that carries no content (padding, a date) may be read; the content must then be whole.
        read = content_or_code(tmp_path / "step_1.pt")
        refused += read in ("C102", "C103")
        assert read in ("C102", "C103", digest_of(payload(1)))
    assert refused > 100


def test_the_newest_is_found_by_number_and_not_by_name_or_date(tmp_path: Path) -> None:
    for step in (10, 9, 100, 8):
        write_whole(tmp_path / f"step_{step}.pt", payload(step))
    (tmp_path / "step_x.pt").write_bytes(b"")
    assert [path.name for path in numbered_checkpoints(tmp_path)] == [
        "step_100.pt",
        "step_10.pt",
        "step_9.pt",
        "step_8.pt",
    ]
    found = newest_whole(tmp_path)
    assert found is not None
    assert found[1]["state"]["step"] == 100


def test_leftovers_of_a_killed_write_are_removed_and_the_newest_n_kept(tmp_path: Path) -> None:
    (tmp_path / "step_3.123.tmp").write_bytes(b"half")
    writer = CheckpointWriter(tmp_path, keep=2)
    for step in (1, 2, 3):
        writer.save(payload(step), step, best=step == 1)
    writer.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.pt", "last.pt", "step_2.pt", "step_3.pt"]
    assert read_whole(tmp_path / "best.pt")["state"]["step"] == 1
    assert read_whole(tmp_path / "last.pt")["state"]["step"] == 3
    assert writer.last_digest == digest_of(payload(3))


def test_a_copy_is_taken_before_training_goes_on(tmp_path: Path) -> None:
    changing = payload(1)
    writer = CheckpointWriter(tmp_path, keep=2)
    writer.save(changing, 1, best=False)
    changing["model"]["weight"].zero_()
    writer.close()
    assert digest_of(read_whole(tmp_path / "step_1.pt")) == digest_of(payload(1))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 KiB; skips where mounting is not allowed."""
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)], capture_output=True)
    if done.returncode:
        pytest.skip(f"cannot mount a small file system here: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_keeps_the_older_checkpoint_and_the_run_alive(small_disk: Path) -> None:
    writer = CheckpointWriter(small_disk, keep=5)
    writer.save(payload(1), 1, best=False)
    writer.wait()
    (small_disk / "filler").write_bytes(b"x" * 350_000)
    big = payload(2) | {"more": torch.zeros(100_000)}
    writer.save(big, 2, best=False)
    writer.close()
    assert writer.failed_writes == 1
    found = newest_whole(small_disk)
    assert found is not None
    assert found[1]["state"]["step"] == 1
    assert not list(small_disk.glob("*.tmp"))


def test_too_little_space_is_refused_before_the_first_step(small_disk: Path) -> None:
    with pytest.raises(UserError) as caught:
        CheckpointWriter(small_disk, keep=1).check_space({"model": torch.zeros(100_000)})
    assert caught.value.code == "C104"


def test_a_folder_that_cannot_be_written_is_refused_before_the_first_step(small_disk: Path) -> None:
    writer = CheckpointWriter(small_disk, keep=1)
    subprocess.run(["mount", "-o", "remount,ro,size=100m", str(small_disk)], check=True)
    with pytest.raises(UserError) as caught:
        writer.check_space({"model": torch.zeros(1)})
    assert caught.value.code in ("C104", "C105")
    subprocess.run(["mount", "-o", "remount,rw,size=400k", str(small_disk)], check=True)


def test_a_missing_file_and_a_newer_format_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        read_whole(tmp_path / "none.pt")
    assert caught.value.code == "C101"
    torch.save({"format": 99, "digest": "", "payload": {}}, tmp_path / "new.pt")
    with pytest.raises(UserError) as caught:
        read_whole(tmp_path / "new.pt")
    assert caught.value.code == "C103"
    assert os.path.exists(tmp_path / "new.pt")
