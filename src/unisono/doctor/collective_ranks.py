"""One rank of the collective self-test: `torchrun -m unisono.doctor.collective_ranks PLATFORM ANSWER`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from unisono.platforms.select import select_platform

# Floats in a buffer: 4 B to 64 MB.
SIZES = (1, 64, 4096, 262_144, 16_777_216)
Test = Callable[[Tensor, int, int], tuple[bool, Tensor]]


def _all_reduce(values: Tensor, rank: int, world: int) -> tuple[bool, Tensor]:
    dist.all_reduce(values)
    return bool((values == world * (world + 1) / 2).all()), values


def _broadcast(values: Tensor, rank: int, world: int) -> tuple[bool, Tensor]:
    dist.broadcast(values, src=world - 1)
    return bool((values == world).all()), values


def _all_gather(values: Tensor, rank: int, world: int) -> tuple[bool, Tensor]:
    parts = [torch.empty_like(values) for _ in range(world)]
    dist.all_gather(parts, values)
    return all(bool((part == peer + 1).all()) for peer, part in enumerate(parts)), values


def _reduce_scatter(values: Tensor, rank: int, world: int) -> tuple[bool, Tensor]:
    mine = torch.empty_like(values)
    dist.reduce_scatter(mine, [values * (peer + 1) for peer in range(world)])
    return bool((mine == (rank + 1) * world * (world + 1) / 2).all()), mine


def _all_to_all(values: Tensor, rank: int, world: int) -> tuple[bool, Tensor]:
    size = -(-values.numel() // world)
    send = values.new_full((size * world,), rank + 1)
    received = torch.empty_like(send)
    dist.all_to_all_single(received, send)
    expected = torch.arange(1, world + 1, device=values.device, dtype=values.dtype).repeat_interleave(size)
    return bool((received == expected).all()), received


def _send_receive(values: Tensor, rank: int, world: int) -> tuple[bool, Tensor]:
    received = torch.empty_like(values)
    operations = [
        dist.P2POp(dist.isend, values, (rank + 1) % world),
        dist.P2POp(dist.irecv, received, (rank - 1) % world),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    return bool((received == (rank - 1) % world + 1).all()), received


def _objects(values: Tensor, rank: int, world: int) -> tuple[bool, Tensor]:
    everyone: list[Any] = [None] * world
    dist.all_gather_object(everyone, {"rank": rank})
    return everyone == [{"rank": peer} for peer in range(world)], values


TESTS: dict[str, Test] = {
    "all_reduce": _all_reduce,
    "broadcast": _broadcast,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "send and receive": _send_receive,
    "objects": _objects,
}


def main(platform_name: str, answer: Path) -> None:
    """Run every test at every size; rank 0 writes the answer."""
    platform = select_platform(platform_name)
    local_rank = int(os.environ["LOCAL_RANK"])
    device = platform.activate(local_rank, int(os.environ["LOCAL_WORLD_SIZE"]))
    dist.init_process_group(platform.backend)
    rank, world = dist.get_rank(), dist.get_world_size()
    rows = []
    for name, test in TESTS.items():
        wrong, seconds = [], 0.0
        for size in SIZES:
            values = torch.full((size,), float(rank + 1), device=device)
            dist.barrier()
            platform.synchronize()
            started = time.perf_counter()
            right, _ = test(values, rank, world)
            platform.synchronize()
            seconds = time.perf_counter() - started
            votes = torch.tensor([int(right)], dtype=torch.int32, device=device)
            dist.all_reduce(votes, op=dist.ReduceOp.MIN)
            if not int(votes.item()):
                wrong.append(size * 4)
        rows.append(
            {
                "name": name,
                "wrong": wrong,
                "largest_mb": SIZES[-1] * 4 / 2**20,
                "ms": seconds * 1e3,
                "gb_s": SIZES[-1] * 4 / 1e9 / seconds,
            }
        )
    dist.barrier()
    if rank == 0:
        answer.write_text(json.dumps(rows), encoding="utf-8")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
