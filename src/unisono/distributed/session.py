"""The process group of a run: opened once, closed on every path, with time limits that are stated."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from unisono.errors import UserError
from unisono.job.world import World

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Session:
    """This process's place in the run."""

    world: World
    device: torch.device
    timeout_s: float
    """How long a rank waits for another."""

    @property
    def rank(self) -> int:
        """Global rank."""
        return self.world.rank

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.world.world_size

    @property
    def is_first(self) -> bool:
        """True on rank 0, which alone writes what is written once."""
        return self.world.rank == 0


@contextmanager
def open_session(world: World, device: torch.device, backend: str, timeout_s: float) -> Iterator[Session]:
    """Join the process group for the length of a `with`. A world of one opens none. Collective.

    Args:
        timeout_s: seconds after which a collective that some rank does not join fails, naming the missing ranks.

    Raises:
        UserError: J203 the ranks did not find each other, J204 the backend is not in this build of PyTorch.
    """
    if world.world_size == 1 or dist.is_initialized():
        # A program that embeds a run may have opened the group itself, and then closes it itself.
        yield Session(world, device, timeout_s)
        return
    if not dist.is_backend_available(backend):
        raise UserError(
            "J204",
            f"no {backend} in this build of PyTorch",
            f"torch {torch.__version__} was built without it",
            "install the build for this device; `unisono doctor` names it",
        )
    try:
        dist.init_process_group(
            backend,
            init_method=f"tcp://{world.master_addr}:{world.master_port}" if world.launcher != "torchrun" else "env://",
            rank=world.rank,
            world_size=world.world_size,
            timeout=timedelta(seconds=timeout_s),
        )
    except (RuntimeError, ValueError) as error:
        raise _as_user_error(error, world) from error
    yield Session(world, device, timeout_s)
    # Only after success: with a rank gone, taking the group down would wait for it.
    dist.destroy_process_group()


def _as_user_error(error: Exception, world: World) -> UserError:
    text = str(error)
    address = f"{world.master_addr}:{world.master_port}"
    if "EADDRINUSE" in text or "address already in use" in text.lower():
        return UserError(
            "J205",
            f"port {world.master_port} on {world.master_addr} is taken",
            "another job listens there",
            "end that job, or set MASTER_PORT to a free port",
        )
    return UserError(
        "J203",
        f"rank {world.rank} did not join the other {world.world_size - 1} ranks at {address}",
        text.strip().splitlines()[0] if text.strip() else type(error).__name__,
        "check that every rank was started with the same address and port, and that the address can be reached",
    )
