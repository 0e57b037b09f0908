"""What a run leaves behind: manifest, metrics by step, TensorBoard events, summary."""

from __future__ import annotations

import json
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

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class RunWriter:
    """Writes `metrics.jsonl`, TensorBoard events, `manifest.json` and `summary.json` of one run folder. Rank 0 alone."""

    def __init__(self, run_dir: Path, resumed_at: int) -> None:
        self.run_dir = run_dir
        self._metrics = run_dir / "metrics.jsonl"
        _drop_lines_after(self._metrics, resumed_at)
        self._file = open(self._metrics, "a", encoding="utf-8")  # noqa: SIM115  # closed in close(); it lives as long as the run
        self._board: SummaryWriter | None = None
        self._resumed_at = resumed_at

    def record(self, kind: str, step: int, values: Mapping[str, Any]) -> None:
        """One line of metrics.jsonl; numbers go to TensorBoard too."""
        self._file.write(json.dumps({"kind": kind, "step": step, **values}) + "\n")
        self._file.flush()
        board = self._tensorboard()
        for name, value in values.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                board.add_scalar(f"{kind}/{name}", value, step)

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """A JSON file of the run folder, replaced at once."""
        path = self.run_dir / name
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        temporary.rename(path)

    def close(self) -> None:
        """Flush and close everything."""
        self._file.close()
        if self._board is not None:
            self._board.close()

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
    path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")


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
