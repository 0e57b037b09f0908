"""What a run leaves behind: manifest, metrics by step, TensorBoard events, summary."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unisono import __version__
from unisono.errors import ExitCode, UserError

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

log = logging.getLogger("unisono")


class RunWriter:
    """Writes `metrics.jsonl`, TensorBoard events, `manifest.json` and `summary.json` of one run folder. Rank 0 alone.

    A full disk ends no training: lines of metrics wait in memory until there is room, TensorBoard's events stop. Both are told.
    """

    def __init__(self, run_dir: Path, resumed_at: int) -> None:
        self.run_dir = run_dir
        self._metrics = run_dir / "metrics.jsonl"
        _drop_lines_after(self._metrics, resumed_at)
        self._file = open(self._metrics, "a", encoding="utf-8")  # noqa: SIM115  # closed in close(); it lives as long as the run
        self._board: SummaryWriter | None = None
        self._board_failed = False
        self._waiting = False
        self._resumed_at = resumed_at

    def record(self, kind: str, step: int, values: Mapping[str, Any]) -> None:
        """One line of metrics.jsonl; numbers go to TensorBoard too."""
        self._file.write(json.dumps({"kind": kind, "step": step, **values}) + "\n")
        self._flush()
        if self._board_failed:
            return
        try:
            board = self._tensorboard()
            for name, value in values.items():
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    board.add_scalar(f"{kind}/{name}", value, step)
        except OSError as error:
            self._board_failed = True
            log.error("TensorBoard events end at step %d: %s; metrics.jsonl holds the same figures", step, error.strerror)

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """A JSON file of the run folder, replaced at once.

        Raises:
            UserError: C106 the file system refused it.
        """
        path = self.run_dir / name
        try:
            _replace(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise UserError(
                "C106",
                f"cannot write {path}",
                error.strerror or str(error),
                "mend the folder, then --resume auto",
                exit_code=ExitCode.CRASHED,
            ) from error

    def close(self) -> None:
        """Flush and close everything; what finds no room even now is told."""
        self._flush()
        with contextlib.suppress(OSError):  # told by the flush before
            self._file.close()
        if self._board is not None:
            with contextlib.suppress(OSError):  # its thread raises its old error again
                self._board.close()

    def _flush(self) -> None:
        """A line that finds no room stays in the file's buffer, and goes with the next."""
        try:
            self._file.flush()
        except OSError as error:
            if not self._waiting:
                log.error("metrics.jsonl not written: %s; its lines wait for room", error.strerror)
            self._waiting = True
        else:
            self._waiting = False

    def _tensorboard(self) -> SummaryWriter:
        if self._board is None:
            # Imported late: it takes half a second, and a run should begin first.
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(self.run_dir / "tensorboard"), purge_step=self._resumed_at or None)
        return self._board


def _drop_lines_after(path: Path, step: int) -> None:
    """Forget what a run recorded after the checkpoint it goes on from; those steps are made again."""
    if not path.exists():
        return
    kept: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line)
        except (json.JSONDecodeError, KeyError):
            continue  # a line cut by a crash
    with contextlib.suppress(OSError):  # a full disk keeps the old file, with steps that are then recorded twice
        _replace(path, "".join(f"{line}\n" for line in kept))


def _replace(path: Path, text: str) -> None:
    """Another content at once, or the old one still."""
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def manifest(command: list[str], device: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """What a run was made with: versions, device, host, git commit of the working folder, time of the start."""
    packages = {name: _version_of(name) for name in ("torch", "torchvision", "timm", "torch_npu", "numpy")}
    return {
        "unisono": __version__,
        "python": platform.python_version(),
        "packages": {name: found for name, found in packages.items() if found},
        "host": {"system": platform.platform(), "cores": os.cpu_count()},
        "device": dict(device),
        "git": _git_commit(),
        "command": command,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        **extra,
    }


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git_commit() -> str | None:
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, timeout=5, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def python_command() -> list[str]:
    """The command of this process as it was typed."""
    return ["unisono", *sys.argv[1:]]
