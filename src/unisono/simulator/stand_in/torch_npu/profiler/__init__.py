"""torch_npu's profiler over torch's: it records the host's operators. No time in it is an NPU's."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerAction

from torch_npu._missing import also_known_as, missing_names
from torch_npu.profiler import experimental_config
from torch_npu.profiler.experimental_config import (
    AiCMetrics,
    ExportType,
    HostSystem,
    ProfilerLevel,
    _ExperimentalConfig,
    supported_ai_core_metrics,
    supported_export_type,
    supported_profiler_level,
)

__all__ = [
    "AiCMetrics", "ExportType", "HostSystem", "ProfilerAction", "ProfilerActivity", "ProfilerLevel", "_ExperimentalConfig",
    "experimental_config", "profile", "schedule", "supported_activities", "supported_ai_core_metrics",
    "supported_export_type", "supported_profiler_level", "tensorboard_trace_handler",
]  # fmt: skip


class ProfilerActivity:
    """What may be recorded. Both come to the host's operators here."""

    CPU = torch.profiler.ProfilerActivity.CPU
    NPU = torch.profiler.ProfilerActivity.PrivateUse1


def supported_activities() -> set[Any]:
    """The activities there are."""
    return {ProfilerActivity.CPU, ProfilerActivity.NPU}


class schedule:  # torch_npu's spelling
    """Skip, wait, warm up, record, and again; called with the number of a step."""

    def __init__(
        self, wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
    ) -> None:
        self._plan = torch.profiler.schedule(
            wait=wait, active=active, warmup=warmup, repeat=repeat, skip_first=skip_first, skip_first_wait=skip_first_wait
        )

    def __call__(self, step: int) -> ProfilerAction:
        return ProfilerAction(self._plan(step))


def tensorboard_trace_handler(
    dir_name: str | None = None,
    worker_name: str | None = None,
    analyse_flag: bool = True,
    async_mode: bool = False,
) -> Callable[[Any], None]:
    """Write a trace into a folder when a recording ends. The name of the file says `simulated`."""
    folder = Path(dir_name or ".")

    def write(profiler: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{time.time_ns()}"
        profiler.export_chrome_trace(str(folder / f"{worker}.simulated.pt.trace.json"))

    return write


class profile(torch.profiler.profile):  # torch_npu's spelling
    """Record the host's operators; settings about NPU metrics are accepted and have no effect."""

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        custom_trace_id_callback: Callable[..., Any] | None = None,
        use_cuda: bool | None = None,
    ) -> None:
        super().__init__(
            activities=[torch.profiler.ProfilerActivity.CPU],
            schedule=schedule,
            on_trace_ready=on_trace_ready,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
            with_flops=with_flops,
            execution_trace_observer=execution_trace_observer,
        )


__getattr__ = missing_names(__name__)
also_known_as(__name__, "profiler", "profiler_interface", "scheduler")
