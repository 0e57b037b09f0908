"""Where a run lives: `runs/<recipe>/<time>/`, agreed by all ranks, and which run `--resume` means."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unisono.errors import UserError
from unisono.train.checkpoint import newest_whole, numbered_checkpoints, read_whole


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A run's folder and the checkpoint it goes on from."""

    path: Path
    resume_from: Path | None = None
    resumed_at: int = 0
    """Steps in that checkpoint; 0 for a fresh run."""

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints are written."""
        return self.path / "checkpoints"

    @property
    def logs(self) -> Path:
        """One log a rank."""
        return self.path / "logs"


def make_run_dir(runs_dir: Path, recipe_name: str) -> Path:
    """A new folder named by the second; a number is added when that second has one already.

    Raises:
        UserError: C105 the folder cannot be made.
    """
    stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
    for suffix in ("", *(f"_{number}" for number in range(2, 1000))):
        path = runs_dir / recipe_name / f"{stamp}{suffix}"
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            if not path.is_dir():
                break
            continue
        except OSError as error:
            raise UserError(
                "C105", f"cannot make {path}", error.strerror or str(error), "choose another folder with --runs-dir"
            ) from error
        return path
    raise UserError(
        "C105",
        f"cannot make a folder in {runs_dir / recipe_name}",
        "a file of that name is in the way",
        "choose another folder with --runs-dir",
    )


def newest_run_dir(runs_dir: Path, recipe_name: str) -> Path:
    """The newest run of a recipe that holds a checkpoint.

    Raises:
        UserError: C107 there is none.
    """
    folder = runs_dir / recipe_name
    runs = [path for path in folder.iterdir() if numbered_checkpoints(path / "checkpoints")] if folder.is_dir() else []
    if not runs:
        raise UserError(
            "C107",
            f"nothing to resume for {recipe_name}",
            f"no run with a checkpoint in {folder}",
            "start without --resume, or name a checkpoint file",
        )
    return max(runs, key=lambda path: path.stat().st_mtime)


def read_summary(run_dir: Path) -> dict[str, Any]:
    """The summary of a run; empty when it has none yet."""
    path = run_dir / "summary.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def with_resume(folder: RunFolder, checkpoint: Path | None) -> RunFolder:
    """Decide what to go on from: a checkpoint named by the user, else the newest whole one of the folder itself.

    Raises:
        UserError: C101 or C102 for a named checkpoint that is missing or damaged.
    """
    found = newest_whole(folder.checkpoints)
    if found is None and checkpoint is not None:
        found = (checkpoint, read_whole(checkpoint))
    if found is None:
        return folder
    path, payload = found
    return replace(folder, resume_from=path.resolve(), resumed_at=int(payload["state"]["step"]))
