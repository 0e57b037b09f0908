"""The few collectives that the trainer uses besides the reduction, in types every backend moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from unisono.job.replicas import share_out


def sum_over_ranks(counts: Sequence[int], device: torch.device) -> list[int]:
    """Whole numbers summed over all ranks, exactly. Collective."""
    if not dist.is_initialized():
        return list(counts)
    total = torch.tensor(counts, dtype=torch.int64, device=device)
    dist.all_reduce(total)
    return [int(count) for count in total.tolist()]


def any_rank(flag: bool, device: torch.device) -> bool:
    """True when `flag` is true on at least one rank. Collective."""
    # int32: bool is not reducible on every backend.
    if not dist.is_initialized():
        return flag
    votes = torch.tensor([int(flag)], dtype=torch.int32, device=device)
    dist.all_reduce(votes, op=dist.ReduceOp.MAX)
    return bool(votes.item())


def gather_replicas(mine: Tensor, replicas: int) -> Tensor:
    """Rows of every replica, in order, on every rank: [local replicas, ...] -> [replicas, ...]. Collective.

    Rows are moved, never added, so that their bits arrive as they are.
    """
    if not dist.is_initialized():
        return mine
    shares = share_out(replicas, dist.get_world_size())
    most = len(shares[0])
    padded = mine.new_zeros((most, *mine.shape[1:]))
    padded[: mine.shape[0]] = mine
    everyone = [torch.empty_like(padded) for _ in shares]
    dist.all_gather(everyone, padded)
    return torch.cat([rows[: len(share)] for rows, share in zip(everyone, shares, strict=True)])


def broadcast_object(value: Any, device: torch.device) -> Any:
    """Rank 0's plain value, on every rank. Collective."""
    if not dist.is_initialized():
        return value
    box = [value]
    dist.broadcast_object_list(box, src=0, device=device if device.type != "cpu" else None)
    return box[0]


def gather_objects(value: Any) -> list[Any]:
    """Every rank's plain value, in rank order, on every rank. Collective."""
    if not dist.is_initialized():
        return [value]
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def barrier() -> None:
    """Wait for every rank. Collective."""
    if dist.is_initialized():
        dist.barrier()
