"""CPU cores over gloo. The number of threads changes a kernel's own order of summation, so the Job fixes it."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Mapping
from typing import Any

import psutil
import torch

from unisono.job.capabilities import Capabilities


class CpuPlatform:
    """A process on some of the machine's cores."""

    name = "cpu"
    backend = "gloo"
    simulated = False
    capabilities = Capabilities(
        fp16=True,
        bf16=True,
        overflow="inf_nan",
        channels_last=True,
        pinned_memory=False,
        # They round the last few elements of a tensor (those that fill no vector register) unlike the plain rule, which
        # is what simulated NPUs compute; the plain loop costs under 1 % of a step more.
        torch_fused_optimizers=False,
        reads_are_free=True,
        worker_start_method="fork",
    )

    def device_count(self) -> int:
        """Cores that this process may run on."""
        return len(os.sched_getaffinity(0))

    def activate(self, local_rank: int, local_world_size: int) -> torch.device:
        """Keep memory. Denormals stay on: the flag is a thread's own, and gradients are added by several threads."""
        keep_freed_memory()
        return torch.device("cpu")

    def synchronize(self) -> None:
        """Nothing runs behind the host."""

    def seed(self, seed: int) -> None:
        """Seed the CPU generator."""
        torch.default_generator.manual_seed(seed)

    def take_overflow(self) -> bool:
        """False: an overflow is an infinity here."""
        return False

    def fused_optimizers(self) -> Mapping[str, type[torch.optim.Optimizer]]:
        """None: torch's own are the best there are."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Processor, instruction set, cores, memory in bytes."""
        memory = psutil.Process().memory_info()
        return {
            "device": _processor_name(),
            "instructions": torch.backends.cpu.get_cpu_capability(),
            "cores": os.cpu_count(),
            "memory_bytes": psutil.virtual_memory().total,
            "peak_memory_bytes": _peak_resident_bytes() or memory.rss,
        }


def keep_freed_memory() -> bool:
    """Let glibc's allocator reuse large blocks instead of giving each back to the kernel; False under another C library.

    A step frees and asks for the same activations again, and every page that the kernel hands out anew is zeroed first:
    a quarter of a step of MobileNetV3 at batch 16, a tenth of ResNet-50's.
    """
    # Of mallopt(3). A high M_MMAP_THRESHOLD would not do: glibc takes no more than 32 MiB, and activations are larger.
    trim_threshold, mmap_max = -1, -4
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(mmap_max, 0) and mallopt(trim_threshold, 2**31 - 1))


def _processor_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _peak_resident_bytes() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
