"""Random numbers: each device has a Mersenne twister like the CPU's, so equal seeds draw equal numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from torch_npu._missing import missing_names
from torch_npu._runtime import device_index, extension
from torch_npu.npu.utils import current_device, device_count, is_initialized


def get_default_generator(device_index: int) -> torch.Generator:
    """The generator that a device's operators draw from."""
    generator: torch.Generator = extension.default_generator(device_index)
    return generator


def manual_seed(seed: int) -> None:
    """Seed the current device."""
    get_default_generator(current_device()).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed all devices."""
    for index in range(device_count()):
        get_default_generator(index).manual_seed(int(seed))


def seed() -> None:
    """Seed the current device from the system's entropy."""
    get_default_generator(current_device()).seed()


def seed_all() -> None:
    """Seed all devices alike from the system's entropy."""
    manual_seed_all(torch.Generator().seed())


def initial_seed() -> int:
    """The current device's seed."""
    return get_default_generator(current_device()).initial_seed()


def get_rng_state(device: Any = "npu") -> torch.Tensor:
    """A device's generator state, as a CPU tensor of bytes."""
    return get_default_generator(device_index(device)).get_state()


def set_rng_state(new_state: torch.Tensor, device: Any = "npu") -> None:
    """Put a generator state back."""
    get_default_generator(device_index(device)).set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Put the states of all devices back."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


__all__ = ["device_count", "is_initialized"]
__getattr__ = missing_names(__name__)
