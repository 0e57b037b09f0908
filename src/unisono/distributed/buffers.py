"""Each replica owns its batch-norm buffers; evaluation and the exported model use their mean."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unisono.distributed.collectives import gather_replicas


class ReplicaBuffers:
    """The floating-point buffers of a model (running means and variances), one copy a local replica.

    Other buffers, such as batch counts, advance alike on every replica and stay shared: the counts of the first local
    replica's passes are kept.
    """

    def __init__(self, model: nn.Module, local_replicas: int) -> None:
        self._owners: list[tuple[nn.Module, str]] = []
        self.names: list[str] = []
        for prefix, module in model.named_modules():
            for name, buffer in module.named_buffers(recurse=False):
                if buffer.is_floating_point():
                    self._owners.append((module, name))
                    self.names.append(f"{prefix}.{name}" if prefix else name)
        self._counters = [b for b in model.buffers() if not b.is_floating_point()]
        self._counts = [c.clone() for c in self._counters]
        self._own: list[list[Tensor]] = [
            [getattr(module, name).detach().clone() for module, name in self._owners] for _ in range(local_replicas)
        ]
        self._bind(self._own[0])

    def activate(self, position: int) -> None:
        """Let the model read and update the buffers of the local replica at `position`."""
        if len(self._own) == 1:
            return
        for counter, count in zip(self._counters, self._counts, strict=True):
            if position == 0:
                count.copy_(counter)
            else:
                counter.copy_(count)
        self._bind(self._own[position])

    def gather(self, replicas: int) -> dict[str, Tensor]:
        """Every replica's buffers by name, [replicas, ...], on every rank. Collective."""
        if not self._owners:
            return {}
        rows = torch.stack([torch.cat([b.reshape(-1).float() for b in own]) for own in self._own])
        everyone = gather_replicas(rows, replicas)
        pieces = everyone.split([b.numel() for b in self._own[0]], dim=1)
        return {
            name: piece.reshape(replicas, *like.shape).to(like.dtype)
            for name, piece, like in zip(self.names, pieces, self._own[0], strict=True)
        }

    def load(self, everyone: dict[str, Tensor], block: range) -> None:
        """Take this rank's replicas from what `gather` gave, on whatever number of ranks."""
        for position, replica in enumerate(block):
            for name, own in zip(self.names, self._own[position], strict=True):
                own.copy_(everyone[name][replica])
        self._bind(self._own[0])

    def use_mean(self, replicas: int) -> None:
        """Bind the mean over all replicas, equal on every rank, for evaluation. Collective."""
        mean = self.mean_of(self.gather(replicas))
        self._bind([mean[name].to(own.device) for name, own in zip(self.names, self._own[0], strict=True)])

    def mean_of(self, rows: dict[str, Tensor]) -> dict[str, Tensor]:
        """The mean over replicas of what `gather` gave, on the CPU.

        In double there, so that every platform comes to the same bits (NPUs have no float64).
        """
        return {name: own.cpu().double().mean(0).to(own.dtype) for name, own in rows.items()}

    def use_own(self) -> None:
        """Back to the first local replica's buffers after evaluation."""
        self._bind(self._own[0])

    def _bind(self, buffers: list[Tensor]) -> None:
        for (module, name), buffer in zip(self._owners, buffers, strict=True):
            module._buffers[name] = buffer
