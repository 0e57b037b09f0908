"""Random streams as pure functions: what dropout draws depends on (seed, step, replica) and on nothing before it."""

from __future__ import annotations

_MASK = 2**64 - 1


def stream_seed(seed: int, step: int, replica: int) -> int:
    """A 63-bit seed for one replica's forward pass of one step.

    Source of the mixing: the finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
    generators", 2014), applied once for each argument.
    """
    state = 0
    for part in (seed, step, replica):
        state = (state + part + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state >> 1
