"""The data set: its shape, and how fast this machine reads it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from unisono.doctor.finding import Finding, fail, ok, skip, warn

_SLOW_MB_S = 50
_MOST_OF_A_FILE = 64 * 2**20


def check_dataset(path: Path | None) -> Iterator[Finding]:
    """H170-H171."""
    if path is None:
        yield skip("H170", "the data set", "give --data-path to check one")
        return
    if not path.is_dir():
        yield fail("H170", "no such data folder", str(path), "check --data-path")
        return
    files = []
    for file in path.rglob("*"):
        if file.is_file():
            files.append(file)
        if len(files) == 2000:
            break
    if not files:
        yield fail(
            "H170",
            "the data folder is empty",
            str(path),
            "check --data-path, or fetch the set",
            f"unisono data download cifar10 {path}",
        )
        return
    layout = _layout(path)
    if layout is None:
        yield warn(
            "H170",
            "no known data set here",
            str(path),
            "expected IDX files, CIFAR's pickles, or train/ and val/ folders",
        )
    else:
        yield ok("H170", f"looks like {layout}", f"{path}; `unisono data check {path}` reads every image")
    yield _speed(files[:: max(1, len(files) // 200)])


def _layout(path: Path) -> str | None:
    if (path / "train").is_dir() and any((path / name).is_dir() for name in ("val", "validation", "test")):
        return "folders of images"
    for name, pattern in (
        ("CIFAR", "data_batch_1"),
        ("CIFAR-100", "cifar-100-python/train"),
        ("Fashion-MNIST", "train-images-idx3-ubyte*"),
    ):
        if any(path.glob(f"**/{pattern}")):
            return name
    return None


def _speed(files: list[Path]) -> Finding:
    started, size = time.perf_counter(), 0
    for file in files:
        try:
            with open(file, "rb") as opened:
                size += len(opened.read(_MOST_OF_A_FILE))
        except OSError as error:
            return fail("H171", "a file cannot be read", f"{file}: {error.strerror}", "check permissions and the disk")
        if time.perf_counter() - started > 5:
            break
    speed = size / 2**20 / max(1e-6, time.perf_counter() - started)
    if speed < _SLOW_MB_S and size > 2**20:
        return warn(
            "H171",
            f"reads {speed:,.0f} MiB/s",
            f"{size / 2**20:,.1f} MiB in {len(files)} files",
            "copy the set to a local disk",
        )
    return ok("H171", f"reads {speed:,.0f} MiB/s", "files may come from the cache")
