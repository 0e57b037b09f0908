"""Outside commands: each with a time limit; a missing one is an answer, not a crash."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
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
    """Run a command to its end or its time limit; never raises. Past the limit its children are ended with it."""
    if shutil.which(command[0]) is None:
        return Output(False)
    try:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            # A group of its own, so that Ctrl-C reaches it through `_end` and not twice.
            start_new_session=True,
        )
    except OSError as error:
        return Output(True, -1, str(error))
    try:
        written, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _end(process)
        return Output(True, -1, f"no answer within {timeout_s:g} s", timed_out=True)
    except BaseException:  # Ctrl-C goes to this process alone, as the command has a group of its own
        _end(process)
        raise
    return Output(True, process.returncode, (written + errors).decode("utf-8", "replace"))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and all that descends from it; a launcher's ranks have groups of their own, so groups do not do."""
    import psutil

    family: list[psutil.Process] = []
    with suppress(psutil.Error):
        head = psutil.Process(process.pid)
        head.suspend()  # so that it starts no more while its children are counted
        family = [*head.children(recursive=True), head]
    for member in family:
        with suppress(psutil.Error):
            member.kill()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    # A command stuck in the driver cannot be ended; leaving it is better than waiting for ever.
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=2)
