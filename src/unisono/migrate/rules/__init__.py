"""The rules, one family a file. A finding's code is stable: M1 devices, M2 torch.cuda names, M3 process groups and
launching, M4 mixed precision, M5 apex, M6 loading, M7 environment variables, M8 switches and number types, M9 libraries
and profilers."""

from __future__ import annotations

from functools import cache

from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.rules import (
    amp,
    apex,
    apex_amp,
    backends,
    comparisons,
    devices,
    distributed,
    dtypes,
    dynamic,
    environment,
    imports,
    launch,
    libraries,
    loading,
    names,
    profiling,
    strings,
)
from unisono.migrate.rules.base import Family, Visit

# Order counts: an earlier family's edit wins, and marks what the later, more general ones leave alone.
FAMILIES: tuple[Family, ...] = (
    imports.FAMILY, loading.FAMILY, dynamic.FAMILY, apex_amp.FAMILY, apex.FAMILY, amp.FAMILY, profiling.FAMILY, devices.FAMILY,
    comparisons.FAMILY, distributed.FAMILY, launch.FAMILY, backends.FAMILY, dtypes.FAMILY, environment.FAMILY, libraries.FAMILY,
    names.FAMILY, strings.FAMILY,
)  # fmt: skip

ENGINE_RULES = (
    RuleInfo("M001", "a file that cannot be read or parsed", FixKind.MANUAL),
    RuleInfo("M002", "rules that got in each other's way", FixKind.MANUAL),
    RuleInfo("M101", "the import of torch_npu", FixKind.SAFE),
)


@cache
def all_rules() -> dict[str, RuleInfo]:
    """Every rule of Python sources by code, in the order of codes."""
    found = {rule.code: rule for family in FAMILIES for rule in family.rules}
    found.update({rule.code: rule for rule in ENGINE_RULES})
    return dict(sorted(found.items()))


@cache
def visits_by_type(node_type: type) -> tuple[Visit, ...]:
    """The functions that look at nodes of this type, in the order of families."""
    return tuple(visit for family in FAMILIES for types, visit in family.visits if issubclass(node_type, types))
