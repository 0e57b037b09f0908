"""How ranks finish the gradient tree together. Four routes, one result: every sum has the tree's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist
from torch import Tensor

from unisono.distributed.buckets import Bucket, bind_buckets
from unisono.distributed.shared_memory import SharedBlocks, share_blocks
from unisono.job.replicas import Node, SumOrder, leaves, roots_of_ranks, share_out, sum_order

Wait = Callable[[], object]
Exchange = Callable[[Bucket], Wait]
"""Takes a bucket with this rank's sub-tree sums in it and starts; once the returned call is back, its first level holds
the sum over all replicas."""


def open_exchange(
    buckets: Sequence[Bucket], *, replicas: int, rank: int, world_size: int, device: torch.device, timeout_s: float
) -> Exchange:
    """Give the buckets their memory, shared with the other ranks where it can be, and choose the route. Collective."""
    levels = sum_order(leaves(share_out(replicas, world_size)[rank]), replicas).depth
    floats = levels * sum(bucket.size for bucket in buckets)
    shared = None
    if device.type == "cpu" and world_size > 1:
        shared = share_blocks(floats, rank=rank, world_size=world_size, timeout_s=timeout_s)
    blocks: Sequence[Tensor | None]
    if shared is None:
        blocks = [torch.zeros(floats, device=device) if peer == rank else None for peer in range(world_size)]
    else:
        blocks = shared.blocks
    bind_buckets(buckets, blocks, rank, [len(held) for held in roots_of_ranks(replicas, world_size)])
    return _choose_route(replicas, world_size, rank, device, shared)


def _choose_route(
    replicas: int, world_size: int, rank: int, device: torch.device, shared: SharedBlocks | None
) -> Exchange:
    """The cheapest route that keeps the tree's order. All ranks must start exchanges in the same order.

    Ranks whose buckets lie in shared blocks add there. A sum of two is the tree already, whoever adds: two ranks
    with one sub-tree each use a plain all-reduce. Ranks that hold equal sub-trees of a perfect tree use pairwise
    halving and doubling (Rabenseifner's scheme, nearest neighbour first, which is the tree's order). All others
    exchange shards of every sub-tree.
    """
    if world_size == 1:
        return lambda bucket: lambda: None
    roots = roots_of_ranks(replicas, world_size)
    finish = sum_order([root for held in roots for root in held], replicas)
    run = _behind_backward(device)
    if shared is not None:
        meet = shared.meet
        return lambda bucket: run(lambda: _add_in_place(bucket.sums, finish, rank, world_size, meet))
    if all(len(held) == 1 for held in roots):
        if world_size == 2:
            return lambda bucket: _all_reduce_two(bucket.sums[rank][0])
        if _is_perfect(replicas, world_size):
            return lambda bucket: run(lambda: _halving_doubling(bucket.sums[rank][0], rank, world_size))
    return lambda bucket: run(lambda: _exchange_shards(bucket.sums[rank], roots, finish, rank, world_size))


def _behind_backward(device: torch.device) -> Callable[[Callable[[], object]], Wait]:
    """Runs exchanges of several rounds beside the backward pass: on a thread for the CPU, on a stream elsewhere."""
    if device.type == "cpu":
        # One thread, so that exchanges keep their order.
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="exchange")
        return lambda work: thread.submit(work).result
    stream = torch.Stream(device)

    def on_stream(work: Callable[[], object]) -> Wait:
        ready = torch.accelerator.current_stream(device).record_event()
        with stream:
            stream.wait_event(ready)
            work()
            done = stream.record_event()
        return lambda: torch.accelerator.current_stream(device).wait_event(done)

    return on_stream


def _is_perfect(replicas: int, world_size: int) -> bool:
    return replicas & (replicas - 1) == 0 and world_size & (world_size - 1) == 0


def _add_in_place(
    sums: Sequence[Sequence[Tensor]], finish: SumOrder, rank: int, world_size: int, meet: Callable[[], None]
) -> None:
    """Each rank adds its shard of everyone's sub-trees where they lie, and puts the sum into everyone's first."""
    size = sums[rank][0].numel() // world_size
    shard = slice(rank * size, (rank + 1) * size)
    meet()
    finished = _sum([part[shard] for held in sums for part in held], finish)
    for held in sums[1:]:  # the sum was made in rank 0's first sub-tree
        held[0][shard].copy_(finished)
    meet()


def _all_reduce_two(flat: Tensor) -> Wait:
    work = dist.all_reduce(flat, async_op=True)
    assert work is not None
    return work.wait


def _halving_doubling(flat: Tensor, rank: int, world_size: int) -> None:
    """Reduce-scatter by halves, nearest rank first, then gather by doubling. Moves 2 (N-1)/N of the buffer a rank."""
    low, high = 0, flat.numel()
    received = torch.empty(high // 2, dtype=flat.dtype, device=flat.device)
    steps: list[tuple[int, int, int]] = []
    distance = 1
    while distance < world_size:
        partner, middle = rank ^ distance, (low + high) // 2
        keep, give = ((low, middle), (middle, high)) if rank < partner else ((middle, high), (low, middle))
        theirs = received[: middle - low]
        _swap(flat[give[0] : give[1]], theirs, partner)
        flat[keep[0] : keep[1]].add_(theirs)
        steps.append((partner, *give))
        low, high = keep
        distance *= 2
    for partner, give_low, give_high in reversed(steps):
        _swap(flat[low:high], flat[give_low:give_high], partner)
        low, high = min(low, give_low), max(high, give_high)


def _exchange_shards(
    sums: Sequence[Tensor], roots: Sequence[Sequence[Node]], finish: SumOrder, rank: int, world_size: int
) -> None:
    """All-to-all of shards, the rest of the tree on each shard, then all-gather of the finished shards."""
    flat = sums[0]
    size = flat.numel() // world_size
    shard = slice(rank * size, (rank + 1) * size)
    received = [[flat.new_empty(size) for _ in held] if peer != rank else [] for peer, held in enumerate(roots)]
    operations: list[dist.P2POp] = []
    for peer in _others(rank, world_size):
        operations += [dist.P2POp(dist.isend, part[peer * size : (peer + 1) * size], peer) for part in sums]
        operations += [dist.P2POp(dist.irecv, part, peer) for part in received[peer]]
    _run(operations)
    received[rank] = [part[shard] for part in sums]
    finished = _sum([part for held in received for part in held], finish)
    flat[shard].copy_(finished)
    operations = [dist.P2POp(dist.isend, flat[shard], peer) for peer in _others(rank, world_size)]
    operations += [
        dist.P2POp(dist.irecv, flat[peer * size : (peer + 1) * size], peer) for peer in _others(rank, world_size)
    ]
    _run(operations)


def _sum(parts: Sequence[Tensor], order: SumOrder) -> Tensor:
    stack: list[Tensor] = []
    for part, merges in zip(parts, order.merges, strict=True):
        stack.append(part)
        for _ in range(merges):
            right = stack.pop()
            stack[-1].add_(right)
    return stack[0]


def _others(rank: int, world_size: int) -> list[int]:
    """The other ranks, each rank beginning with its next neighbour, so that they do not all send to one."""
    return [(rank + step) % world_size for step in range(1, world_size)]


def _swap(send: Tensor, receive: Tensor, partner: int) -> None:
    _run([dist.P2POp(dist.isend, send, partner), dist.P2POp(dist.irecv, receive, partner)])


def _run(operations: list[dist.P2POp]) -> None:
    for work in dist.batch_isend_irecv(operations):
        work.wait()
