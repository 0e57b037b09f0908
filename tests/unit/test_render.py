"""Lines that several threads print at once stay whole."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import threading
from unisono.cli import render

def tell(rank, write):
    for number in range(400):
        write(f"rank{rank}: line {number} ends here")

threads = [threading.Thread(target=tell, args=(rank, (render.line, render.note)[rank % 2])) for rank in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def test_lines_of_several_ranks_on_both_streams_never_tear() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.setswitchinterval(1e-6)\n" + PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        timeout=60,
    )
    expected = sorted(f"rank{rank}: line {number} ends here" for rank in range(8) for number in range(400))
    assert sorted(done.stdout.splitlines()) == expected
