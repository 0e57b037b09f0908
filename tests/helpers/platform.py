"""Where the laws' tests run: on the CPU, or on simulated NPUs when they run under `unisono simulate`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unisono.platforms.base import Platform

SIMULATED = bool(os.environ.get("UNISONO_SIM_DEVICES"))
NAME, BACKEND = ("npu", "hccl") if SIMULATED else ("cpu", "gloo")


def platform_under_test() -> Platform:
    """The platform that these tests train on."""
    from unisono.platforms.cpu import CpuPlatform
    from unisono.platforms.npu import NpuPlatform

    return NpuPlatform() if SIMULATED else CpuPlatform()
