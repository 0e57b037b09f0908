"""Which image goes where: pure functions of (seed, epoch), so that any step can be begun on any number of ranks."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from unisono.data.base import Indices

_TRAIN_ORDER = 1
_SAMPLE = 2


def epoch_order(seed: int, epoch: int, images: int) -> Indices:
    """The order of one epoch: a permutation of all images, [images]."""
    return np.random.Generator(np.random.Philox(key=_key(seed, epoch, _TRAIN_ORDER))).permutation(images)


def replica_indices(
    order: Indices, step_in_epoch: int, replica: int, replicas: int, per_replica_batch_size: int
) -> Indices:
    """The images of one replica in one step: its slice of the step's slice of the order."""
    start = (step_in_epoch * replicas + replica) * per_replica_batch_size
    return order[start : start + per_replica_batch_size]


def eval_bounds(images: int, batch_size: int, rank: int, world_size: int) -> list[tuple[int, int]]:
    """The (first, end) of this rank's validation batches.

    The set is cut into batches first and the batches are shared out after, so that a batch's content, and with it
    every logit, does not depend on the number of ranks.
    """
    batches = -(-images // batch_size)
    mine = range(batches * rank // world_size, batches * (rank + 1) // world_size)
    return [(batch * batch_size, min(images, (batch + 1) * batch_size)) for batch in mine]


def sample_uniforms(seed: int, epoch: int, indices: Indices, columns: int) -> NDArray[np.float64]:
    """Numbers in [0, 1) for augmenting each image, [n, columns]: a function of (seed, epoch, image, column) alone.

    A counter-based hash, so that whole batches come from one vector expression. Source: the finalizer of SplitMix64
    (Steele, Lea, Flood 2014).
    """
    start = np.uint64(_key(seed, epoch, _SAMPLE) & (2**64 - 1))
    state = start + indices.astype(np.uint64)[:, None] * np.uint64(0x9E3779B97F4A7C15)
    state = _mix(_mix(state) + np.arange(1, columns + 1, dtype=np.uint64)[None, :] * np.uint64(0xD1B54A32D192ED03))
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53


def sample_seed(seed: int, epoch: int, index: int) -> int:
    """A 32-bit seed for libraries that draw by themselves while augmenting one image."""
    return int(sample_uniforms(seed, epoch, np.array([index]), 1)[0, 0] * 2**32)


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@lru_cache(maxsize=64)
def _key(seed: int, epoch: int, purpose: int) -> int:
    """128 bits from seed, epoch and what the numbers are for."""
    words = np.random.SeedSequence([seed & 0xFFFFFFFF, seed >> 32, epoch + 1, purpose]).generate_state(4, np.uint32)
    return sum(int(word) << (32 * place) for place, word in enumerate(words))
