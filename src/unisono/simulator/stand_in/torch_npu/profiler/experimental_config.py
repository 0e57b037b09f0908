"""Settings of NPU metrics: names and values that scripts pass to the profiler."""

from __future__ import annotations

from typing import Any

from torch_npu._missing import missing_names


class ProfilerLevel:
    """How much a real profiler collects."""

    Level_none = "Level_none"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class AiCMetrics:
    """What a real profiler counts in the cores."""

    PipeUtilization = "PipeUtilization"
    ArithmeticUtilization = "ArithmeticUtilization"
    Memory = "Memory"
    MemoryL0 = "MemoryL0"
    MemoryUB = "MemoryUB"
    ResourceConflictRatio = "ResourceConflictRatio"
    L2Cache = "L2Cache"
    MemoryAccess = "MemoryAccess"
    AiCoreNone = "ACL_AICORE_NONE"


class ExportType:
    """Forms of a real profiler's files."""

    Db = "db"
    Text = "text"


class HostSystem:
    """What a real profiler collects of the host."""

    CPU = "cpu"
    MEM = "mem"
    DISK = "disk"
    NETWORK = "network"
    OSRT = "osrt"


def _values(names: type) -> set[str]:
    return {value for name, value in vars(names).items() if not name.startswith("_")}


def supported_profiler_level() -> set[str]:
    """The levels there are."""
    return _values(ProfilerLevel)


def supported_ai_core_metrics() -> set[str]:
    """The metrics there are."""
    return _values(AiCMetrics)


def supported_export_type() -> set[str]:
    """The export types there are."""
    return _values(ExportType)


class _ExperimentalConfig:
    """Settings of NPU metrics; kept."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings


__getattr__ = missing_names(__name__)
