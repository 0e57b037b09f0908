"""Gradients laid out in flat buffers: the reduction's own, which the optimizer then reads in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

# Kernels may sum in another order when memory is aligned otherwise; 16 floats are one cache line and one AVX-512 register.
_ALIGNMENT = 16
CONTROL_SLOTS = 2
"""Floats at the head of the first bucket that carry votes (stop, not finite) along with the gradients."""


@dataclass(slots=True)
class Bucket:
    """Some parameters' gradients in one flat fp32 buffer a level of the summing stack."""

    index: int
    parameters: list[nn.Parameter]
    offsets: list[int]
    size: int
    """Floats in a buffer, padded so that every rank's shard is aligned."""
    levels: list[Tensor] = field(default_factory=list)
    sums: list[list[Tensor]] = field(default_factory=list)
    """sums[rank][sub-tree]: what each rank brings to the exchange; empty for ranks whose memory is not mapped."""
    views: list[list[Tensor]] = field(default_factory=list)
    """views[level][parameter]: the slot shaped and strided like the parameter."""
    seen: list[bool] = field(default_factory=list)
    """Which parameters' gradients of the replica at work have arrived."""
    missing: int = 0

    def bind(self, blocks: Sequence[Sequence[Tensor]], rank: int, held: Sequence[int]) -> None:
        """Take `blocks[rank]`, a buffer a level, as this rank's memory; it is zeroed, so the padding stays zero.

        Args:
            blocks: every rank's levels; empty for ranks whose memory this process does not map.
            held: how many of its levels hold a rank's sub-tree sums at the end of backward.
        """
        self.levels = list(blocks[rank])
        self.sums = [list(levels[:count]) for levels, count in zip(blocks, held, strict=True)]
        self.views = [
            [_slot(flat, offset, p) for offset, p in zip(self.offsets, self.parameters, strict=True)]
            for flat in self.levels
        ]
        self.expect_all()

    def expect_all(self) -> None:
        """Await every parameter's gradient anew."""
        self.seen = [False] * len(self.parameters)
        self.missing = len(self.parameters)


def lay_out(parameters: Sequence[nn.Parameter], bucket_bytes: int, shards: int) -> list[Bucket]:
    """Cut parameters into buckets in the order their gradients arrive: roughly the reverse of registration.

    The layout depends on the model and `bucket_bytes` alone; only the padding at a bucket's end depends on `shards`.
    """
    buckets: list[Bucket] = []
    members: list[nn.Parameter] = []
    offsets: list[int] = []
    used = _ALIGNMENT  # the head of the first bucket: votes, padded to the alignment
    for parameter in reversed(parameters):
        if members and (used + parameter.numel()) * 4 > bucket_bytes:
            buckets.append(_bucket(len(buckets), members, offsets, used, shards))
            members, offsets, used = [], [], 0
        members.append(parameter)
        offsets.append(used)
        used += _round_up(parameter.numel(), _ALIGNMENT)
    buckets.append(_bucket(len(buckets), members, offsets, used, shards))
    return buckets


def bind_buckets(buckets: Sequence[Bucket], blocks: Sequence[Tensor | None], rank: int, held: Sequence[int]) -> None:
    """Cut each rank's block, flat fp32, into the levels of every bucket, and let the buckets take them.

    Args:
        blocks: a zeroed block a rank, as large as all buckets times that rank's levels; None where it is not mapped.
        held: how many levels hold a rank's sub-tree sums at the end of backward.
    """
    total, start = sum(bucket.size for bucket in buckets), 0
    for bucket in buckets:
        levels: list[tuple[Tensor, ...]] = []
        for block in blocks:
            depth = 0 if block is None else block.numel() // total
            rows = (
                () if block is None else block[start * depth : (start + bucket.size) * depth].view(depth, -1).unbind()
            )
            levels.append(rows)
        bucket.bind(levels, rank, held)
        start += bucket.size


def _bucket(index: int, members: list[nn.Parameter], offsets: list[int], used: int, shards: int) -> Bucket:
    return Bucket(index, members, offsets, _round_up(used, _ALIGNMENT * shards))


def _slot(flat: Tensor, offset: int, parameter: nn.Parameter) -> Tensor:
    # Same strides as the weight (channels_last stays channels_last), so that copies and updates run over plain memory.
    dense = (
        parameter.is_contiguous() or parameter.is_contiguous(memory_format=torch.channels_last)
        if parameter.dim() == 4
        else parameter.is_contiguous()
    )
    part = flat[offset : offset + parameter.numel()]
    return (
        part.as_strided(parameter.size(), parameter.stride(), flat.storage_offset() + offset)
        if dense
        else part.view(parameter.size())
    )


def _round_up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple
