"""Core binding: each rank of a machine gets an even, contiguous share of the cores, as the model zoo's scripts do."""

from __future__ import annotations

import os


def core_share(cores: list[int], local_rank: int, local_world_size: int) -> list[int]:
    """The cores of one rank; with fewer cores than ranks, ranks share them in turn."""
    each = len(cores) // local_world_size
    if each == 0:
        return [cores[local_rank % len(cores)]]
    return cores[local_rank * each : (local_rank + 1) * each]


def bind_cores(local_rank: int, local_world_size: int) -> list[int]:
    """Bind this process to its share of the cores that it may use now; returns them."""
    share = core_share(sorted(os.sched_getaffinity(0)), local_rank, local_world_size)
    os.sched_setaffinity(0, share)
    return share
