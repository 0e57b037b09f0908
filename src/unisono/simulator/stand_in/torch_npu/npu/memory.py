"""Memory statistics, in bytes. Blocks are rounded as torch_npu's allocator rounds them; `reserved` is an estimate."""

from __future__ import annotations

from typing import Any

from torch_npu._missing import missing_names
from torch_npu._runtime import chip, device_index, extension
from torch_npu.npu.utils import ErrCode, is_initialized, pta_error

_fractions: dict[int, float] = {}


def _counters(device: Any) -> dict[str, int]:
    counters: dict[str, int] = extension.memory_counters(device_index(device))
    return counters


def memory_allocated(device: Any = None) -> int:
    """Bytes of tensors on the device now."""
    return _counters(device)["allocated"]


def max_memory_allocated(device: Any = None) -> int:
    """Most bytes of tensors since the start or the last reset."""
    return _counters(device)["allocated_peak"]


def memory_reserved(device: Any = None) -> int:
    """Bytes that an allocator would have taken from the driver: an estimate in segments of 2 MiB."""
    return _counters(device)["reserved"]


def max_memory_reserved(device: Any = None) -> int:
    """Most of those since the start or the last reset."""
    return _counters(device)["reserved_peak"]


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begin the peaks anew at what is in use now."""
    extension.reset_peak_memory(device_index(device))


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Begin the running totals anew."""
    import torch

    torch.accelerator.reset_accumulated_memory_stats(device_index(device))


def empty_cache() -> None:
    """Give back what is reserved and not in use."""
    for device in range(extension.device_count()):
        extension.release_cached_memory(device)


def empty_virt_addr_cache() -> None:
    """There is no cache of virtual addresses."""


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of the device."""
    counters = _counters(device)
    return chip.memory_bytes - counters["reserved"], chip.memory_bytes


def memory_stats(device: Any = None) -> dict[str, int]:
    """torch's flat names. All memory is told as one pool."""
    counters = _counters(device)
    stats: dict[str, int] = {}
    now = {
        "allocated_bytes": ("allocated", "allocated_peak"),
        "active_bytes": ("allocated", "allocated_peak"),
        "requested_bytes": ("requested", "requested_peak"),
        "reserved_bytes": ("reserved", "reserved_peak"),
    }
    for name, (current, peak) in now.items():
        stats[f"{name}.all.current"] = counters[current]
        stats[f"{name}.all.peak"] = counters[peak]
        stats[f"{name}.all.allocated"] = counters["allocated_total"]
        stats[f"{name}.all.freed"] = counters["allocated_total"] - counters[current]
    stats["allocation.all.current"] = counters["allocations"] - counters["frees"]
    stats["allocation.all.allocated"] = counters["allocations"]
    stats["allocation.all.freed"] = counters["frees"]
    stats["num_alloc_retries"] = 0
    stats["num_ooms"] = counters["out_of_memory"]
    return dict(sorted(stats.items()))


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """The same, nested at the dots."""
    nested: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        *path, leaf = name.split(".")
        level = nested
        for part in path:
            level = level.setdefault(part, {})
        level[leaf] = value
    return nested


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A table of the statistics, headed as simulated."""
    rows = [name for name in memory_stats(device) if not abbreviated or name.endswith(("current", "peak"))]
    stats = memory_stats(device)
    width = max(map(len, rows))
    head = f"PyTorch NPU memory summary, device ID {device_index(device)} (simulated)"
    return "\n".join([head, "-" * len(head), *(f"{name:<{width}} | {stats[name]:>16,}" for name in rows)])


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Allow this process only a part of the device's memory; beyond it allocations fail.

    Raises:
        ValueError: a fraction outside 0 to 1.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1" + pta_error(ErrCode.VALUE))
    index = device_index(device)
    _fractions[index] = fraction
    extension.set_memory_limit(index, int(fraction * chip.memory_bytes))


def get_per_process_memory_fraction(device: Any = None) -> float:
    """As set; 1 by default."""
    return _fractions.get(device_index(device), 1.0)


def get_allocator_backend() -> str:
    """Name of the allocator."""
    return "native"


def host_empty_cache() -> None:
    """Pinned host memory is ordinary memory here, and not cached."""


def host_memory_stats() -> dict[str, int]:
    """Nothing is counted of pinned host memory."""
    return {}


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Nothing is counted of pinned host memory."""
    return {}


def reset_peak_host_memory_stats() -> None:
    """Nothing is counted of pinned host memory."""


def reset_accumulated_host_memory_stats() -> None:
    """Nothing is counted of pinned host memory."""


def _record_memory_history(*_: Any, **__: Any) -> None:
    """No history is kept; scripts may ask for one."""


__all__ = ["ErrCode", "is_initialized", "pta_error"]
__getattr__ = missing_names(__name__)
