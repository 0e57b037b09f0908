"""One rank of the collective self-test: `torchrun -m unisono.doctor.collective_ranks PLATFORM ANSWER`.

Local rank 0 of each machine writes the answer, so that every machine tells the same story.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from unisono.errors import UserError
from unisono.platforms.base import Platform
from unisono.platforms.select import device_total, select_platform

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


def _barrier(values: Tensor, rank: int, world: int) -> tuple[bool, Tensor]:
    """Nobody leaves before the last, who comes late by design, has come."""
    late_s = 0.05
    entered = time.monotonic()
    if rank == world - 1:
        time.sleep(late_s)
    dist.barrier()
    # Half of it, because ranks do not enter at the same moment.
    return time.monotonic() - entered >= late_s / 2, values


TESTS: dict[str, Test] = {
    "all_reduce": _all_reduce,
    "broadcast": _broadcast,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "send and receive": _send_receive,
    "objects": _objects,
    "barrier": _barrier,
}
# These move nothing of the buffer, so that sizes and bandwidths mean nothing for them.
SIZELESS = ("objects", "barrier")


def count(platform_name: str, wanted: int, answer: Path) -> None:
    """Look whether so many devices are here, before so many processes are started; writes an error beside the answer."""
    try:
        device_total(select_platform(platform_name), str(wanted))
    except UserError as error:
        _write_error(error, answer)


def _write_error(error: UserError, answer: Path) -> None:
    text = json.dumps({"what": error.what, "why": error.why, "fix": error.fix})
    answer.with_suffix(f".{os.environ.get('RANK', '0')}.error").write_text(text, encoding="utf-8")


def main(platform_name: str, answer: Path) -> None:
    """Run every test at every size; local rank 0 writes the answer, or any rank its own error beside it."""
    try:
        platform = select_platform(platform_name)
        device = platform.activate(int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"]))
    except UserError as error:
        _write_error(error, answer)
        sys.exit(2)
    dist.init_process_group(platform.backend)
    rows = [_try(name, platform, device) for name in TESTS]
    nodes = _nodes()
    if os.environ["LOCAL_RANK"] == "0":
        answer.write_text(json.dumps({"rows": rows, "nodes": nodes, "simulated": platform.simulated}), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


def _try(name: str, platform: Platform, device: torch.device) -> dict[str, Any]:
    """One collective at every size: sizes in bytes that came out wrong, seconds of the smallest and the largest."""
    rank, world = dist.get_rank(), dist.get_world_size()
    sizes = SIZES[:1] if name in SIZELESS else SIZES
    wrong, seconds = [], []
    for size in sizes:
        taken, right = [], True
        for _ in range(2):
            values = torch.full((size,), float(rank + 1), device=device)
            dist.barrier()
            platform.synchronize()
            started = time.perf_counter()
            result = TESTS[name](values, rank, world)
            platform.synchronize()
            taken.append(time.perf_counter() - started)
            right = right and result[0]
        votes = torch.tensor([int(right)], dtype=torch.int32, device=device)
        dist.all_reduce(votes, op=dist.ReduceOp.MIN)
        if not int(votes.item()):
            wrong.append(size * 4)
        seconds.append(min(taken))
    return {
        "name": name,
        "wrong": wrong,
        "smallest_ms": seconds[0] * 1e3,
        "largest_mb": sizes[-1] * 4 / 2**20,
        "largest_ms": seconds[-1] * 1e3,
        "sizeless": name in SIZELESS,
    }


def _nodes() -> list[dict[str, Any]]:
    """One row a machine: its clock against rank 0's, the network card towards rank 0, its torch. Collective."""
    readings: list[list[float]] = []
    for _ in range(5):
        dist.barrier()
        now: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(now, time.time())
        readings.append(now)
    mine = {
        "node": int(os.environ.get("GROUP_RANK", "0")),
        "local_rank": int(os.environ["LOCAL_RANK"]),
        "card": _card_towards(os.environ["MASTER_ADDR"]),
        "torch": torch.__version__,
    }
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, mine)
    return [
        row | {"clock_s": statistics.median(reading[rank] - reading[0] for reading in readings)}
        for rank, row in enumerate(everyone)
        if row["local_rank"] == 0
    ]


def _card_towards(host: str) -> str:
    """The name of the network card that packets to `host` leave by; the address of this end where it has no name."""
    import psutil

    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            # Connecting a datagram socket sends nothing; it only chooses the way.
            probe.connect((host, 9))
            own = probe.getsockname()[0]
    except OSError:
        return "unknown"
    for name, addresses in psutil.net_if_addrs().items():
        if any(address.address == own for address in addresses):
            return str(name)
    return str(own)


if __name__ == "__main__":
    if len(sys.argv) > 3:
        count(sys.argv[1], int(sys.argv[3]), Path(sys.argv[2]))
    else:
        main(sys.argv[1], Path(sys.argv[2]))
