"""The extension, set up for what is simulated. Imported once; everything of the stand-in goes through it."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from typing import Any

import torch
from torch.utils.backend_registration import rename_privateuse1_backend

from unisono.errors import UserError
from unisono.simulator.build import load_extension
from unisono.simulator.chips import Chip
from unisono.simulator.settings import SimulatorSettings, settings_from

BACKEND = "npu"
_LONGEST_EXEC_TIMEOUT_S = 2147483647


def _settings() -> SimulatorSettings:
    return settings_from(os.environ) or SimulatorSettings()


def _visible_cards(devices: int) -> list[int]:
    """ASCEND_RT_VISIBLE_DEVICES narrows and orders the devices; the first number that does not exist ends the list."""
    listed = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    if listed is None:
        return list(range(devices))
    cards: list[int] = []
    for part in listed.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            break
        numbers = list(range(int(first), int(last or first) + 1))
        if any(number >= devices or number in cards for number in numbers):
            break
        cards += numbers
    return cards


def _saturates(rules: Chip) -> bool:
    """Ascend's switches for chips that could keep inf and NaN."""
    return (
        rules.saturates
        or os.environ.get("INF_NAN_MODE_ENABLE") == "0"
        or os.environ.get("INF_NAN_MODE_FORCE_DISABLE") == "1"
    )


settings = _settings()
chip = settings.rules
saturates = _saturates(chip)
cards = _visible_cards(settings.devices)
extension: Any = load_extension()
extension.configure(len(cards), chip.memory_bytes, saturates, chip.bfloat16, chip.two_rings, cards)


def take_backend_slot() -> None:
    """Rename torch's slot for other devices to npu.

    Raises:
        UserError: S102 another backend has it.
    """
    try:
        rename_privateuse1_backend(BACKEND)
    except RuntimeError as error:
        raise UserError(
            "S102",
            "torch's slot for other devices is taken",
            str(error).splitlines()[0],
            "simulate in a process where no other device backend is loaded",
        ) from error


def device_index(device: Any = None, *, optional: bool = True) -> int:
    """The number of a device given as number, string, torch.device or None (the current one).

    Raises:
        ValueError: a device of another kind, or none where one is needed.
    """
    if device is None and optional:
        return int(extension.current_device())
    if isinstance(device, int):
        return device
    wanted = torch.device(device)
    if wanted.type != BACKEND:
        raise ValueError(f"Expected a npu device, but got: {wanted}")
    return int(extension.current_device()) if wanted.index is None else int(wanted.index)


def make_process_group(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    """The backend `hccl`: gloo underneath. HCCL_EXEC_TIMEOUT, where set, shortens the wait for another rank."""
    from torch.distributed import ProcessGroupGloo

    execution = os.environ.get("HCCL_EXEC_TIMEOUT", "")
    if execution.isdigit() and 0 < int(execution) < _LONGEST_EXEC_TIMEOUT_S:
        timeout = min(timeout, timedelta(seconds=int(execution)))
    server = f"{socket.gethostname()}/{os.environ.get('GROUP_RANK', os.environ.get('NODE_RANK', '0'))}"
    try:
        gloo = ProcessGroupGloo(store, rank, size, timeout)
    except RuntimeError as error:
        raise RuntimeError(
            extension.hccl_error(
                "HcclCommInitRootInfo",
                6,
                "EI0006",
                f"no socket to another rank in time; one is absent or late. ({str(error).splitlines()[0]})",
            )
        ) from error
    return extension.make_hccl(gloo, store, server)
