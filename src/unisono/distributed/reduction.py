"""How the gradients of all replicas become one, exactly or fast, while backward still runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from unisono.distributed.buckets import CONTROL_SLOTS, Bucket, lay_out
from unisono.distributed.exchange import Wait, open_exchange
from unisono.distributed.session import Session
from unisono.job.replicas import leaves, share_out, sum_order
from unisono.recipe.schema import ReductionRecipe


class Votes(NamedTuple):
    """How many ranks asked to stop, and how many saw a loss that is not finite, in this step."""

    stop: int
    not_finite: int


class Reduction(Protocol):
    """Sums the gradients of all replicas into `parameter.grad`, equal on all ranks."""

    loss_factor: float
    """What a replica's mean loss is multiplied by before backward, so that the sum is the mean over replicas."""

    @property
    def module(self) -> nn.Module:
        """What to call for the forward pass."""
        ...

    def backward(self, loss: Tensor, position: int, votes: Votes) -> None:
        """Backward of the local replica at `position`. The last one's call carries this rank's votes."""
        ...

    def finish(self) -> None:
        """Wait for the sums; afterwards every `parameter.grad` holds the whole batch's. Collective."""
        ...

    def votes(self) -> Votes:
        """The step's votes over all ranks. Reads the device."""
        ...


def build_reduction(recipe: ReductionRecipe, model: nn.Module, *, replicas: int, session: Session) -> Reduction:
    """The reduction that the recipe names. Collective: `fast` sends rank 0's weights to all."""
    rank, world_size, device = session.rank, session.world_size, session.device
    bucket_bytes = int(recipe.bucket_mib * 2**20)
    if recipe.name == "exact":
        return ExactReduction(
            model,
            replicas=replicas,
            rank=rank,
            world_size=world_size,
            bucket_bytes=bucket_bytes,
            device=device,
            timeout_s=session.timeout_s,
        )
    return FastReduction(model, replicas=replicas, rank=rank, world_size=world_size, recipe=recipe, device=device)


class ExactReduction:
    """One fixed binary tree over replicas: the same bits for any number of ranks.

    Each gradient goes, as soon as backward has it, into a slot of a flat buffer, or is added to the neighbouring
    replica's slot there. When the last local replica has filled a bucket, its exchange starts behind backward.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        replicas: int,
        rank: int,
        world_size: int,
        bucket_bytes: int,
        device: torch.device,
        timeout_s: float,
    ) -> None:
        block = share_out(replicas, world_size)[rank]
        self.loss_factor = 1.0 / replicas
        self._model = model
        self._rank = rank
        self._order = sum_order(leaves(block), replicas)
        self._last = len(block) - 1
        self._position = 0
        self._height = 0
        self._votes = Votes(0, 0)
        self._waits: list[Wait] = []
        self._next_to_start = 0
        parameters = [p for p in model.parameters() if p.requires_grad]
        self.buckets = lay_out(parameters, bucket_bytes, world_size)
        self._exchange = open_exchange(
            self.buckets, replicas=replicas, rank=rank, world_size=world_size, device=device, timeout_s=timeout_s
        )
        for bucket in self.buckets:
            for slot, parameter in enumerate(bucket.parameters):
                parameter.register_post_accumulate_grad_hook(self._hook(bucket, slot))

    @property
    def module(self) -> nn.Module:
        return self._model

    def backward(self, loss: Tensor, position: int, votes: Votes) -> None:
        if position == 0:
            self._height, self._next_to_start, self._waits = 0, 0, []
            for bucket in self.buckets:
                for parameter in bucket.parameters:
                    parameter.grad = None
        self._position, self._votes = position, votes
        loss.backward()
        self._end_replica()

    def finish(self) -> None:
        for wait in self._waits:
            wait()
        for bucket in self.buckets:
            for parameter, view in zip(bucket.parameters, bucket.views[0], strict=True):
                parameter.grad = view

    def votes(self) -> Votes:
        stop, not_finite = self.buckets[0].levels[0][:CONTROL_SLOTS].tolist()
        return Votes(round(stop), round(not_finite))

    @property
    def _merges(self) -> int:
        return self._order.merges[self._position]

    @property
    def _level(self) -> int:
        """The level that the current replica's gradients go to: the top when they are added, the next one when not."""
        return self._height - 1 if self._merges else self._height

    def _hook(self, bucket: Bucket, slot: int) -> Callable[[Tensor], None]:
        def take(parameter: Tensor) -> None:
            gradient = parameter.grad
            assert gradient is not None
            view = bucket.views[self._level][slot]
            if self._merges:
                view.add_(gradient)
            else:
                view.copy_(gradient)
            parameter.grad = None
            if not bucket.seen[slot]:
                bucket.seen[slot] = True
                bucket.missing -= 1
                if bucket.missing == 0:
                    self._complete(bucket)

        return take

    def _complete(self, bucket: Bucket) -> None:
        """All gradients of one replica are in: finish the local merges and, after the last replica, start exchanging."""
        top = self._level
        for _ in range(self._merges - 1):
            bucket.levels[top - 1].add_(bucket.levels[top])
            top -= 1
        if self._position == self._last:
            self._start_in_order()

    def _start_in_order(self) -> None:
        # Ranks must start exchanges in one order, and gradients may arrive in another where the graph branches.
        while self._next_to_start < len(self.buckets) and self.buckets[self._next_to_start].missing == 0:
            bucket = self.buckets[self._next_to_start]
            if bucket.index == 0:
                first, *others = bucket.sums[self._rank]
                for other in others:
                    other[:CONTROL_SLOTS] = 0
                first[0], first[1] = self._votes
            self._waits.append(self._exchange(bucket))
            self._next_to_start += 1

    def _end_replica(self) -> None:
        """Parameters that this replica's graph did not reach count as zero gradient, as on every world size."""
        for bucket in self.buckets:
            if bucket.missing:
                for slot, seen in enumerate(bucket.seen):
                    if not seen and not self._merges:
                        bucket.views[self._level][slot].zero_()
                bucket.missing = 0
                self._complete(bucket)
        self._height += 1 if self._merges == 0 else 1 - self._merges
        for bucket in self.buckets:
            bucket.expect_all()


class FastReduction:
    """DDP's overlapped all-reduce. Fast, and as exact as the backend's own order of summation."""

    def __init__(
        self,
        model: nn.Module,
        *,
        replicas: int,
        rank: int,
        world_size: int,
        recipe: ReductionRecipe,
        device: torch.device,
    ) -> None:
        self._last = len(share_out(replicas, world_size)[rank]) - 1
        self._ddp: DistributedDataParallel | None = None
        self._device = device
        self._votes = Votes(0, 0)
        self._model = model
        if dist.is_initialized():
            self._ddp = DistributedDataParallel(
                model,
                device_ids=None if device.type == "cpu" else [device.index],
                broadcast_buffers=False,
                gradient_as_bucket_view=True,
                bucket_cap_mb=recipe.bucket_mib,
            )
            if recipe.compress == "bf16":
                from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

                self._ddp.register_comm_hook(None, bf16_compress_hook)
        # DDP divides by the number of ranks; the mean is wanted over replicas.
        self.loss_factor = world_size / replicas

    @property
    def module(self) -> nn.Module:
        return self._ddp or self._model

    def backward(self, loss: Tensor, position: int, votes: Votes) -> None:
        if position == 0:
            self._model.zero_grad(set_to_none=False)
        last = position == self._last
        with nullcontext() if last or self._ddp is None else self._ddp.no_sync():
            loss.backward()
        self._votes = votes

    def finish(self) -> None:
        """DDP's hooks have already waited when backward returns."""

    def votes(self) -> Votes:
        if not dist.is_initialized():
            return self._votes
        ballots = torch.tensor(self._votes, dtype=torch.int32, device=self._device)
        dist.all_reduce(ballots)
        stop, not_finite = ballots.tolist()
        return Votes(stop, not_finite)
