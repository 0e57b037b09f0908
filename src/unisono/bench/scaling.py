"""Weak and strong scaling from comparable, interleaved, repeated runs; a pair that cannot be right is marked."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from unisono.bench.case import Case, Series
from unisono.errors import UserError

_PHASES = ("data", "forward", "backward", "reduce", "update")


@dataclass(frozen=True, slots=True)
class Row:
    """One number of devices."""

    devices: int
    images_per_second: float
    spread: float
    efficiency: float
    """weak: R_N / (N R_1); strong: t1 / (N tN)."""
    faulty: str | None
    straggler: int | None
    phase_shares_by_rank: list[dict[str, float]]
    first_step_s: float


def weak_cases(base: Case, devices: list[int]) -> list[Case]:
    """As many replicas as devices: each device's work stays the same."""
    return [replace(base, devices=count, replicas=count) for count in devices]


def strong_cases(base: Case, devices: list[int], replicas: int) -> list[Case]:
    """The recipe's replicas shared out: the whole work stays the same."""
    too_many = [count for count in devices if count > replicas]
    if too_many:
        raise UserError(
            "B103",
            f"{too_many[0]} devices for {replicas} replicas",
            "strong scaling shares the replicas out",
            f"use at most {replicas} devices, or --replicas",
        )
    return [replace(base, devices=count, replicas=replicas) for count in devices]


def efficiencies(series: list[Series]) -> list[Row]:
    """Efficiency of each series against the first.

    Raises:
        UserError: B104 the series differ in more than devices and replicas.
    """
    first = series[0]
    for other in series[1:]:
        if other.case.comparable() != first.case.comparable():
            raise UserError(
                "B104",
                "these runs cannot be compared",
                f"{first.case.comparable()} and {other.case.comparable()}",
                "measure both with equal recipe, precision, threads and data",
            )
    rows = []
    for one in series:
        relative = one.images_per_second / first.images_per_second * first.case.devices / one.case.devices
        rows.append(
            Row(
                one.case.devices,
                one.images_per_second,
                one.spread,
                relative,
                _fault(relative, one, first),
                one.straggler(),
                one.phase_shares(),
                min(run.first_step_s for run in one.runs),
            )
        )
    return rows


def _fault(efficiency: float, one: Series, first: Series) -> str | None:
    """Nothing scales better than perfectly: above 100 % beyond the noise the two runs were not the same work."""
    noise = one.spread + first.spread
    if efficiency > 1 + noise / 2 + 1e-9 and one.case.devices > first.case.devices:
        return f"{efficiency:.0%} is above 100 %: a faulty pair (noise {noise:.0%})"
    return None


def table(kind: str, rows: list[Row]) -> list[str]:
    """The rows for a person."""
    lines = [f"{kind} scaling", "devices  images/s  a device  efficiency  spread  data  compute  communication  update"]
    for row in rows:
        mean = {
            phase: sum(rank.get(phase, 0.0) for rank in row.phase_shares_by_rank) / row.devices for phase in _PHASES
        }
        lines.append(
            f"{row.devices:>7}  {row.images_per_second:>8,.1f}  {row.images_per_second / row.devices:>8,.1f}"
            f"  {row.efficiency:>10.1%}  {row.spread:>6.1%}"
            f"  {mean['data']:>4.0%}  {mean['forward'] + mean['backward']:>7.0%}  {mean['reduce']:>13.0%}  {mean['update']:>6.0%}"
        )
        if row.faulty:
            lines.append(f"         ^ {row.faulty}")
        if row.straggler is not None:
            lines.append(f"         ^ the others wait for rank {row.straggler}")
    return lines


def to_plain(rows: list[Row]) -> list[dict[str, Any]]:
    """For JSON."""
    return [asdict(row) for row in rows]
