"""Models and gradients for the reduction's tests, in a module that fresh processes can import."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from unisono.distributed import exchange
from unisono.distributed.reduction import ExactReduction, Votes
from unisono.job.replicas import share_out
from unisono.train.digest import digest_of


class Branching(nn.Module):
    """A model with a parameter that some replicas do not reach."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Flatten(),
            nn.LazyLinear(37),
            nn.ReLU(),
            nn.Linear(37, 5),
        )
        self.sometimes = nn.Linear(5, 5)
        self.never = nn.Linear(3, 3)

    def forward(self, images: torch.Tensor, *, branch: bool) -> torch.Tensor:
        out = self.body(images)
        return self.sometimes(out) if branch else out


def fresh_model() -> Branching:
    """The same weights every time."""
    torch.manual_seed(3)
    model = Branching()
    model(torch.zeros(2, 3, 9, 9), branch=True)
    return model.to(memory_format=torch.channels_last)


def reduced_gradients(
    rank: int, world_size: int, replicas: int, bucket_bytes: int, steps: int
) -> tuple[str, list[Votes]]:
    """Digest of the summed gradients of some steps, and the votes of each step; ranks 1 and 2 vote."""
    model = fresh_model()
    reduction = ExactReduction(
        model,
        replicas=replicas,
        rank=rank,
        world_size=world_size,
        bucket_bytes=bucket_bytes,
        device=torch.device("cpu"),
        timeout_s=60,
    )
    gradients, votes = [], []
    for step in range(steps):
        for position, replica in enumerate(share_out(replicas, world_size)[rank]):
            generator = torch.Generator().manual_seed(1000 * step + replica)
            images = torch.randn(4, 3, 9, 9, generator=generator)
            loss = model(images, branch=replica % 3 == 1).square().mean() * 10 ** (replica - 3)
            reduction.backward(loss * reduction.loss_factor, position, Votes(int(rank == 1), int(rank >= 1)))
        reduction.finish()
        votes.append(reduction.votes())
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    return digest_of(gradients), votes


def reduced_gradients_over_messages(*arguments: Any) -> tuple[str, list[Votes]]:
    """The same of ranks that cannot map each other's memory."""
    exchange.share_blocks = lambda *_, **__: None
    return reduced_gradients(*arguments)
