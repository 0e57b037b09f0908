"""Choosing hardware: by name, or the first that is there. Never a silent fall-back."""

from __future__ import annotations

import logging
from collections.abc import Callable

from unisono.errors import UserError
from unisono.platforms.base import Platform
from unisono.platforms.cpu import CpuPlatform
from unisono.platforms.cuda import CudaPlatform
from unisono.platforms.npu import NpuPlatform

log = logging.getLogger(__name__)

# In the order that "auto" tries them. New hardware is one line here.
PLATFORMS: dict[str, Callable[[], Platform]] = {"npu": NpuPlatform, "cuda": CudaPlatform, "cpu": CpuPlatform}


def select_platform(name: str) -> Platform:
    """The platform of that name, or for "auto" the first of npu, cuda, cpu that has a device.

    Raises:
        UserError: P101 an unknown name, P102 no such device here, P104 torch_npu is there but does not import.
    """
    if name == "auto":
        for candidate, make in PLATFORMS.items():
            platform = make()
            count = platform.device_count()
            if count:
                log.info("platform %s: first of %s with a device (%d here)", candidate, ", ".join(PLATFORMS), count)
                return platform
    if name not in PLATFORMS:
        raise UserError.unknown("P101", "platform", name, ("auto", *PLATFORMS))
    platform = PLATFORMS[name]()
    if platform.device_count() == 0:
        raise UserError(
            "P102",
            f"no {name} device here",
            f"the {name} platform sees 0 devices",
            "run `unisono doctor`, or use --platform auto or cpu"
            + ("; --simulate gives simulated NPUs" if name == "npu" else ""),
        )
    return platform


def device_total(platform: Platform, wanted: str) -> int:
    """How many devices `--devices` asks for: a number, or "all".

    Raises:
        UserError: P105 not a number above 0, P106 more than there are (a CPU may start more processes than cores).
    """
    there = platform.device_count()
    if wanted == "all":
        return there
    if not wanted.isdigit() or int(wanted) == 0:
        raise UserError(
            "P105", f"--devices {wanted}", "it is a number above 0, or all", f"use --devices all ({there} here)"
        )
    if int(wanted) > there and platform.name != "cpu":
        raise UserError(
            "P106",
            f"--devices {wanted} with {there} {platform.name} devices here",
            "one process drives one device",
            f"use --devices {there}, or all",
        )
    return int(wanted)
