"""Outside commands: absence, failure, and nothing left alive past the time limit."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil

from unisono.doctor.commands import run


def test_a_command_that_is_not_there_is_not_found() -> None:
    assert not run(["no-such-command-of-unisono"]).found


def test_exit_code_and_both_outputs_are_kept_and_bad_bytes_are_no_fault() -> None:
    program = "import os, sys; os.write(1, b'out\\xff'); os.write(2, b'err'); sys.exit(7)"
    output = run([sys.executable, "-c", program])
    assert (output.code, output.timed_out) == (7, False)
    assert "out" in output.text
    assert "err" in output.text


def test_past_the_limit_even_children_in_sessions_of_their_own_are_ended(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    child = f"import os, pathlib, time; pathlib.Path({str(note)!r}).write_text(str(os.getpid())); time.sleep(600)"
    parent = (
        f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True).wait()"
    )
    limit_s = 5.0
    while not note.exists() or not note.read_text():
        # A machine under load may need longer than this to start two interpreters.
        assert run([sys.executable, "-c", parent], limit_s).timed_out
        limit_s *= 2
        assert limit_s < 60
    assert is_gone_within(10, int(note.read_text()))


def is_gone_within(limit_s: float, pid: int) -> bool:
    """A killed process ends when the kernel next looks at it; a zombie that nobody reaps has ended too."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False
