"""Runs themes of checks: each on its own, a crash in one is a finding and not the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from unisono.doctor.dataset import check_dataset
from unisono.doctor.devices import check_gpus, check_npus
from unisono.doctor.environment import check_environment
from unisono.doctor.finding import Finding, unknown
from unisono.doctor.host import check_host
from unisono.doctor.libraries import check_libraries
from unisono.doctor.network import check_clock, check_network
from unisono.doctor.selftest import Machines, check_collectives, check_training
from unisono.doctor.versions import check_versions
from unisono.errors import UserError

Check = Callable[[], Iterable[Finding]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Examination:
    """What to look at."""

    devices: int | None = None
    """Run the collective self-test on so many."""
    platform: str = "auto"
    machines: Machines = field(default_factory=Machines)
    """With which other machines the collective self-test is run."""
    nodes: tuple[str, ...] = ()
    data_path: Path | None = None
    run_dir: Path = Path("runs")
    training: bool = False
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


def themes(examination: Examination) -> dict[str, Sequence[Check]]:
    """The checks by theme, in order."""
    found: dict[str, Sequence[Check]] = {
        "versions": [check_versions],
        "environment": [check_environment],
        "libraries": [check_libraries],
        "devices": [check_npus, check_gpus],
        "network": [lambda: check_network(examination.nodes), check_clock],
        "host": [lambda: check_host(examination.run_dir, examination.devices or 1)],
        "data": [lambda: check_dataset(examination.data_path)],
    }
    if examination.devices is not None or "collectives" in examination.only:
        devices = examination.devices or 2
        found["collectives"] = [lambda: check_collectives(devices, examination.platform, examination.machines)]
    if examination.training or "training" in examination.only:
        found["training"] = [check_training]
    return found


def examine(examination: Examination) -> dict[str, list[Finding]]:
    """Findings by theme.

    Raises:
        UserError: H195 a theme named by --only or --skip that there is not.
    """
    all_themes = themes(examination)
    known = {*all_themes, "collectives", "training"}
    for name in (*examination.only, *examination.skip):
        if name not in known:
            raise UserError.unknown("H195", "theme", name, known)
    wanted = [
        name
        for name in all_themes
        if (not examination.only or name in examination.only) and name not in examination.skip
    ]
    return {name: [finding for check in all_themes[name] for finding in run_check(check)] for name in wanted}


def run_check(check: Check) -> list[Finding]:
    """The findings of one check; what a crash prevented is said, not hidden."""
    found: list[Finding] = []
    last = time.perf_counter()
    try:
        for finding in check():
            now = time.perf_counter()
            found.append(replace(finding, seconds=round(now - last, 3)))
            last = now
    except Exception as error:  # a check must never end the examination
        name = getattr(check, "__name__", "check")
        found.append(
            unknown(
                "H199",
                f"a check could not be finished ({name})",
                f"{type(error).__name__}: {error}",
                "please report this line",
            )
        )
    return found


def failed(findings: dict[str, list[Finding]]) -> bool:
    """True when something will not run."""
    return any(finding.status == "fail" for theme in findings.values() for finding in theme)
