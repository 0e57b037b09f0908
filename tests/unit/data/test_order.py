"""Order and draws are functions of (seed, epoch, image), nothing else."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unisono.data.order import epoch_order, eval_bounds, replica_indices, sample_seed, sample_uniforms


def test_an_epochs_order_is_a_permutation_that_depends_on_seed_and_epoch() -> None:
    orders = [epoch_order(seed, epoch, 50) for seed in (0, 1, 2**40) for epoch in (0, 1)]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert len({tuple(order) for order in orders}) == 6
    assert np.array_equal(orders[0], epoch_order(0, 0, 50))


def test_replicas_of_a_step_take_disjoint_slices_of_the_order() -> None:
    order = epoch_order(3, 1, 100)
    taken = np.concatenate([replica_indices(order, step, replica, 4, 6) for step in range(4) for replica in range(4)])
    assert np.array_equal(taken, order[:96])


@given(st.integers(1, 200), st.integers(1, 30), st.integers(1, 9))
def test_validation_batches_cover_every_image_once_and_are_the_same_for_any_world(
    images: int, batch: int, world_size: int
) -> None:
    shared = [bounds for rank in range(world_size) for bounds in eval_bounds(images, batch, rank, world_size)]
    assert shared == eval_bounds(images, batch, 0, 1)
    assert [image for first, end in shared for image in range(first, end)] == list(range(images))


def test_an_images_draws_do_not_depend_on_its_neighbours() -> None:
    together = sample_uniforms(7, 2, np.arange(100), 8)
    alone = np.concatenate([sample_uniforms(7, 2, np.array([index]), 8) for index in range(100)])
    assert np.array_equal(together, alone)
    assert np.array_equal(sample_uniforms(7, 2, np.arange(100), 3), together[:, :3])


def test_draws_are_uniform_and_differ_by_epoch_image_column_and_seed() -> None:
    draws = sample_uniforms(0, 0, np.arange(20_000), 4)
    assert draws.min() >= 0
    assert draws.max() < 1
    assert np.abs(draws.mean(axis=0) - 0.5).max() < 0.01
    assert np.abs(np.corrcoef(draws.T) - np.eye(4)).max() < 0.03
    assert np.abs(np.corrcoef(draws[:-1, 0], draws[1:, 0])[0, 1]) < 0.03
    assert not np.array_equal(draws, sample_uniforms(0, 1, np.arange(20_000), 4))
    assert not np.array_equal(draws, sample_uniforms(1, 0, np.arange(20_000), 4))
    assert len({sample_seed(0, 0, index) for index in range(1000)}) == 1000
