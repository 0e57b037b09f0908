"""Memory that a step frees serves the next step."""

from __future__ import annotations

import subprocess
import sys

import pytest

_FAULTS_OF_LAST_USE = """
import resource
import torch
from unisono.platforms.cpu import keep_freed_memory

kept = keep_freed_memory() if {keep} else None
for _ in range(30):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(16 * 2**20)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(kept, faults)
"""


def _last_use(keep: bool) -> tuple[str, int]:
    program = _FAULTS_OF_LAST_USE.format(keep=keep)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    kept, faults = done.stdout.split()
    return kept, int(faults)


# A block's first few uses may each get a place of their own: an aligned request is larger than the block that was freed.
def test_freed_memory_is_used_again_without_asking_the_kernel() -> None:
    kept, faults = _last_use(keep=True)
    if kept == "False":
        pytest.skip("the C library has no mallopt")
    pages = 64 * 2**20 // 4096
    assert faults < pages / 100
    assert _last_use(keep=False)[1] > 10 * max(faults, 1), "else the setting would change nothing"
