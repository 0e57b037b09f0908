"""Outside commands: each with a time limit; a missing one is an answer, not a crash."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Output:
    """What a command gave."""

    found: bool
    """False when there is no such command."""
    code: int = 0
    text: str = ""
    """Standard output, then standard error."""
    timed_out: bool = False


def run(command: Sequence[str], timeout_s: float = 10.0) -> Output:
    """Run a command; never raises."""
    if shutil.which(command[0]) is None:
        return Output(False)
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout_s, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return Output(True, -1, f"no answer within {timeout_s:g} s", timed_out=True)
    except OSError as error:
        return Output(True, -1, str(error))
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    return Output(True, done.returncode, text)
