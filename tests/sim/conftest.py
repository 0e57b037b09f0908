"""How these tests run a program on simulated NPUs, and a small Fashion-MNIST for it."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def simulate(tmp_path: Path) -> Run:
    """Run `unisono simulate OPTIONS -- python PROGRAM ARGUMENTS` in a folder of its own."""

    def run(
        *options: str, program: str | Path, arguments: tuple[str, ...] = (), env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        path = program if isinstance(program, Path) else PROGRAMS / program
        return subprocess.run(
            [sys.executable, "-m", "unisono", "simulate", *options, "--", "python", str(path), *arguments],
            cwd=tmp_path,
            env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )

    return run


@pytest.fixture
def fashion_mnist(tmp_path: Path) -> Path:
    """A Fashion-MNIST of 1,024 and 512 images of stripes, in the real one's files, where scripts look for it."""
    folder = tmp_path / "data" / "FashionMNIST" / "raw"
    folder.mkdir(parents=True)
    for part, count in (("train", 1024), ("t10k", 512)):
        labels = bytes(i % 10 for i in range(count))
        pixels = b"".join(bytes((row * (label + 1) * 9) % 256 for row in range(28)) * 28 for label in labels)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + labels)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, 28, 28) + pixels)
    return folder
