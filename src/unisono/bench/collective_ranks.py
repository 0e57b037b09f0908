"""One rank of `unisono bench collectives`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
import torch.distributed as dist
from torch import Tensor

from unisono.distributed.buckets import Bucket
from unisono.distributed.exchange import open_exchange
from unisono.job.world import read_world
from unisono.platforms.base import Platform
from unisono.platforms.select import select_platform

_TIMEOUT_S = 120.0
_BYTES = (4, 4_096, 262_144, 4_194_304, 67_108_864)


def main(platform_name: str, repeats: int, answer: Path) -> None:
    """Time each collective at each size; rank 0 writes the answer."""
    torch.set_num_threads(1)
    platform = select_platform(platform_name)
    place = read_world()
    assert place is not None, "start it through torchrun"
    device = platform.activate(place.local_rank, place.local_world_size)
    dist.init_process_group(platform.backend)
    world = dist.get_world_size()
    rows = []
    for size in _BYTES:
        count = max(world, size // 4 // world * world)
        values, other = torch.ones(count, device=device), torch.empty(count, device=device)
        for name, call, factor in [*_calls(values, other, world), _exact_sum(count, device, world)]:
            seconds = _time(call, platform, repeats if size < 2**20 else max(3, repeats // 3))
            algorithm = count * 4 / 1e9 / seconds
            rows.append(
                {
                    "name": name,
                    "bytes": count * 4,
                    "ms": seconds * 1e3,
                    "algorithm_gb_s": algorithm,
                    "bus_gb_s": algorithm * factor,
                }
            )
    if dist.get_rank() == 0:
        answer.write_text(json.dumps(rows), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


def _calls(values: Tensor, other: Tensor, world: int) -> list[tuple[str, Callable[[], object], float]]:
    part = values[: values.numel() // world]
    parts = list(other.chunk(world))
    return [
        ("all-reduce", lambda: dist.all_reduce(values), 2 * (world - 1) / world),
        ("all-to-all", lambda: dist.all_to_all_single(other, values), (world - 1) / world),
        ("all-gather", lambda: dist.all_gather(parts, part), (world - 1) / world),
    ]


def _exact_sum(count: int, device: torch.device, world: int) -> tuple[str, Callable[[], object], float]:
    """The exact reduction's exchange of a bucket of so many floats: from the call to the sum on every rank."""
    bucket = Bucket(0, [], [], count)
    exchange = open_exchange(
        [bucket], replicas=world, rank=dist.get_rank(), world_size=world, device=device, timeout_s=_TIMEOUT_S
    )
    return "exact sum", lambda: exchange(bucket)(), 2 * (world - 1) / world


def _time(call: Callable[[], object], platform: Platform, repeats: int) -> float:
    call()
    seconds = []
    for _ in range(repeats):
        dist.barrier()
        platform.synchronize()
        started = time.perf_counter()
        call()
        platform.synchronize()
        seconds.append(time.perf_counter() - started)
    return median(seconds)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
