"""What the trainer asks of hardware. A new kind of device is one file beside this one and one line in `select`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch

from unisono.errors import UserError
from unisono.job.capabilities import Capabilities
from unisono.job.launch import assigned_device


class Platform(Protocol):
    """One kind of device. Every member is a fact or a call that differs between kinds; nothing else belongs here."""

    @property
    def name(self) -> str:
        """cpu, cuda or npu."""
        ...

    @property
    def backend(self) -> str:
        """The process-group backend that moves this platform's tensors: gloo, nccl or hccl."""
        ...

    @property
    def simulated(self) -> bool:
        """True when the devices are stand-ins; results carry the word."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What these devices can do."""
        ...

    def device_count(self) -> int:
        """Devices that this process may use; 0 when there are none. Does not initialise a device."""
        ...

    def activate(self, local_rank: int, local_world_size: int) -> torch.device:
        """Make one device this process's own and set what its vendor advises for training.

        Raises:
            UserError: P103 there is no device of that number.
        """
        ...

    def synchronize(self) -> None:
        """Wait until the device has done all that was asked of it."""
        ...

    def seed(self, seed: int) -> None:
        """Seed the generator that this device's random kernels (dropout) draw from."""
        ...

    def take_overflow(self) -> bool:
        """Whether float16 overflowed here since the last call, where the numbers do not show it (`overflow` is "saturate").

        Waits for the device there; elsewhere always False.
        """
        ...

    def fused_optimizers(self) -> Mapping[str, type[torch.optim.Optimizer]]:
        """The vendor's own fused optimizers by recipe name; empty where torch's are the best there are."""
        ...

    def describe(self) -> dict[str, Any]:
        """Device name, memory in bytes and peak use, versions of the vendor's software: for the manifest."""
        ...


def device_index(local_rank: int, visible: int, platform: str) -> int:
    """The device number of a local rank.

    Launchers that mask to one visible device number it 0 on every rank.

    Raises:
        UserError: P103 there are fewer devices than local ranks.
    """
    index = 0 if visible == 1 else assigned_device(local_rank)
    if index >= visible:
        raise UserError(
            "P103",
            f"local rank {local_rank} has no {platform} device",
            f"{visible} device{'s are' if visible != 1 else ' is'} visible to it",
            f"start at most {visible} ranks a machine, or make more devices visible",
        )
    return index
