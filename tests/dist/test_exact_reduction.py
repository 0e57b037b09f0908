"""The reduction's law: gradients summed in one tree have the same bits on any number of ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.ranks import run_ranks
from helpers.reducing import fresh_model, reduced_gradients, reduced_gradients_over_messages

pytestmark = pytest.mark.dist
ROUTES = pytest.mark.parametrize(
    "reduced", [reduced_gradients, reduced_gradients_over_messages], ids=["shared memory", "messages"]
)


@ROUTES
@pytest.mark.parametrize(
    "bucket_bytes", [1, 2_000, 2**25], ids=["a bucket a parameter", "several buckets", "one bucket"]
)
def test_summed_gradients_are_equal_byte_for_byte_for_1_2_3_4_7_and_8_ranks(
    bucket_bytes: int, reduced: Callable[..., Any]
) -> None:
    [(alone, _)] = run_ranks(1, reduced_gradients, 8, 2**25, 2)
    for world_size in (2, 3, 4, 7, 8):
        for digest, _ in run_ranks(world_size, reduced, 8, bucket_bytes, 2):
            assert digest == alone, f"world size {world_size}"


@ROUTES
@pytest.mark.parametrize("replicas", [2, 3, 5, 6, 7])
def test_any_number_of_replicas_gives_the_same_bits_on_every_world_it_allows(
    replicas: int, reduced: Callable[..., Any]
) -> None:
    [(alone, _)] = run_ranks(1, reduced_gradients, replicas, 2**25, 1)
    for world_size in {2, 3, replicas} & set(range(2, replicas + 1)):
        for digest, _ in run_ranks(world_size, reduced, replicas, 3_000, 1):
            assert digest == alone, f"world size {world_size}"


@ROUTES
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_votes_of_all_ranks_are_counted_on_every_rank_and_do_not_leak_into_the_next_step(
    world_size: int, reduced: Callable[..., Any]
) -> None:
    for _, votes in run_ranks(world_size, reduced, 8, 2_000, 3):
        assert votes == [(1, world_size - 1)] * 3


def test_the_sum_is_the_gradient_of_the_mean_loss() -> None:
    torch.manual_seed(0)
    images = [torch.randn(4, 3, 9, 9, generator=torch.Generator().manual_seed(replica)) for replica in range(4)]
    model = fresh_model()
    torch.stack([model(x, branch=True).square().mean() for x in images]).mean().backward()
    expected = [p.grad for p in model.body.parameters()]

    from unisono.distributed.reduction import ExactReduction, Votes

    summed = fresh_model()
    reduction = ExactReduction(
        summed, replicas=4, rank=0, world_size=1, bucket_bytes=2_000, device=torch.device("cpu"), timeout_s=60
    )
    for position, x in enumerate(images):
        reduction.backward(summed(x, branch=True).square().mean() * reduction.loss_factor, position, Votes(0, 0))
    reduction.finish()
    for parameter, gradient in zip(summed.body.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    assert all(torch.equal(p.grad, torch.zeros_like(p)) for p in summed.never.parameters())
