"""`unisono migrate --try`: the migrated copy in a folder of its own, run by `unisono simulate`, its output read for CUDA."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.cli import render
from unisono.errors import UserError

if TYPE_CHECKING:
    from unisono.migrate.findings import FileResult
    from unisono.migrate.tree import SourceFile

TOUCHES = (
    (re.compile(r"Torch not compiled with CUDA enabled"), "it calls CUDA"),
    (re.compile(r"Found no NVIDIA driver|CUDA driver version is insufficient|CUDA error"), "it calls CUDA"),
    (re.compile(r"module 'torch(?:\.|_npu\.)npu[\w.]*' has no attribute '(\w+)'"), "torch.npu has no such name"),
    (re.compile(r"deserialize object on a CUDA\s+device"), "torch.load without map_location"),
    (
        re.compile(r"No module named '(apex|horovod|nvidia|pynvml|cupy|flash_attn)[\w.]*'"),
        "a library that is CUDA code",
    ),
    (re.compile(r"NCCL (?:is not available|backend)|built with NCCL|[Bb]ackend nccl"), "the backend nccl"),
    (re.compile(r"CUDA_VISIBLE_DEVICES"), "it reads or sets CUDA_VISIBLE_DEVICES"),
    (
        re.compile(r"(?:device string|device type).{0,60}\bcuda\b|User provided device_type of 'cuda'"),
        "a device named cuda",
    ),
    (re.compile(r"NVTX functions not installed"), "nvtx"),
)
FRAME = re.compile(r'File "([^"]+)", line (\d+)')


@dataclass(frozen=True, slots=True)
class Touch:
    """One sign in the output that the program still reaches for CUDA."""

    place: str
    what: str


@dataclass(frozen=True, slots=True)
class Trial:
    """How the command ended and what it touched."""

    exit_code: int
    touches: tuple[Touch, ...]


def try_on_simulator(
    files: Sequence[SourceFile], results: Sequence[FileResult], roots: Sequence[Path], command: str, devices: int
) -> Trial:
    """Run `command` in a migrated copy of the roots. Raises UserError G111 for an empty or unreadable command."""
    from unisono.migrate.tree import write_elsewhere

    words = _words(command)
    with tempfile.TemporaryDirectory(prefix="unisono-try-") as name:
        folder = Path(name)
        _copy_neighbours(roots, folder)
        write_elsewhere(files, results, folder, [root for root in roots if root.is_dir()])
        process = subprocess.Popen(
            [sys.executable, "-m", "unisono", "simulate", "--devices", str(devices), "--", *words],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        lines: list[str] = []
        try:
            for line in process.stdout or ():
                render.note(line.rstrip("\n"))
                lines.append(line)
        finally:
            if process.poll() is None and sys.exc_info()[0] is not None:
                process.terminate()
            code = process.wait()
        return Trial(code, tuple(read_touches(lines, folder)))


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UserError("G111", f"--try {command!r} cannot be read", str(error), "close the quotes") from error
    if not words:
        raise UserError("G111", "--try is empty", "it names the command to run", '--try "train.py --epochs 1"')
    return ["python", *words] if words[0].endswith(".py") else words


def _copy_neighbours(roots: Sequence[Path], folder: Path) -> None:
    """A script given by itself may import the modules beside it."""
    for root in roots:
        if root.is_file():
            for neighbour in root.resolve().parent.glob("*.py"):
                shutil.copy2(neighbour, folder / neighbour.name)


def read_touches(lines: Sequence[str], folder: Path) -> list[Touch]:
    """Signs of CUDA in the output, each with the last place in the copy that the traceback before it names."""
    place = "output"
    found: list[Touch] = []
    for line in lines:
        frame = FRAME.search(line)
        if frame is not None and Path(frame.group(1)).is_relative_to(folder):
            place = f"{Path(frame.group(1)).relative_to(folder)}:{frame.group(2)}"
        for pattern, what in TOUCHES:
            match = pattern.search(line)
            if match is not None:
                detail = f" ({match.group(1)})" if pattern.groups else ""
                touch = Touch(place, what + detail)
                if touch not in found:
                    found.append(touch)
    return found
