"""Blocks that ranks share, in a module that fresh processes can import."""

from __future__ import annotations

import errno
import os
import socket
import time
from pathlib import Path

from unisono.distributed.shared_memory import SharedBlocks, share_blocks

_KEPT: list[SharedBlocks] = []
"""Connections live as long as their rank."""


def written_and_read(rank: int, world_size: int) -> tuple[list[list[float]], list[str]]:
    """What a rank reads in everyone's block after each wrote its number into its own, and the memory files left open."""
    shared = share_blocks(rank + 1, rank=rank, world_size=world_size, timeout_s=30)
    assert shared is not None
    assert not any(block.any() for block in shared.blocks)
    shared.meet()
    shared.blocks[rank].fill_(float(rank))
    shared.meet()
    open_files = [os.readlink(file) for file in Path("/proc/self/fd").iterdir() if file.is_symlink()]
    return [block.tolist() for block in shared.blocks], [file for file in open_files if "memfd:unisono" in file]


def with_a_rank_that_cannot(rank: int, world_size: int, fault: str) -> bool:
    """Whether this rank got blocks although rank 1 met the fault."""
    if rank == 1:
        if fault == "no such call":
            del os.memfd_create
        elif fault == "no memory":
            os.posix_fallocate = _no_memory
        elif fault == "another machine":
            socket.socket.connect = _refused
        elif fault == "no more files":
            socket.recv_fds = _no_files
        else:
            raise AssertionError(fault)
    return share_blocks(4, rank=rank, world_size=world_size, timeout_s=30) is not None


def beside_a_stranger(rank: int, world_size: int) -> bool:
    """Whether the ranks find each other although a stranger called rank 0 first with a wrong password."""
    listen, callers = socket.socket.listen, []

    def listen_and_be_called(listener: socket.socket, backlog: int) -> None:
        listen(listener, backlog + 1)
        stranger = socket.socket(socket.AF_UNIX)
        stranger.connect(listener.getsockname())
        stranger.sendall(bytes(20))
        callers.append(stranger)

    if rank == 0:
        socket.socket.listen = listen_and_be_called
    shared = share_blocks(4, rank=rank, world_size=world_size, timeout_s=30)
    assert shared is not None
    shared.meet()
    return len(callers) == (1 if rank == 0 else 0)


def meeting_a_rank_that_is(rank: int, world_size: int, absent: str) -> str:
    """What the ranks that wait hear when the last one is gone, or late."""
    shared = share_blocks(4, rank=rank, world_size=world_size, timeout_s=0.5)
    assert shared is not None
    _KEPT.append(shared)
    shared.meet()
    if rank == world_size - 1:
        if absent == "gone":
            for line in shared._peers.values():
                line.close()
        return ""
    started = time.monotonic()
    try:
        shared.meet()
    except RuntimeError as error:
        assert time.monotonic() - started < 10
        return str(error)
    return "met"


def _no_memory(*_: object) -> None:
    raise OSError(errno.ENOSPC, "no space left")


def _refused(*_: object) -> None:
    raise ConnectionRefusedError(errno.ECONNREFUSED, "connection refused")


def _no_files(*_: object) -> None:
    raise OSError(errno.EMFILE, "too many open files")
