"""`npu-smi info` in all its forms: 910A, 910B, A3 with two chips a card, containers, wide builds, masked names, NA fields."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip of one card."""

    card: int
    chip: int
    name: str
    health: str
    power_w: float | None = None
    temperature_c: int | None = None
    bus_id: str | None = None
    ai_core_percent: int | None = None
    memory_used_mb: int | None = None
    """HBM where there is a column of it, else DDR."""
    memory_total_mb: int | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """A process that holds a chip."""

    card: int
    chip: int
    pid: int
    name: str
    memory_mb: int | None


@dataclass(frozen=True, slots=True)
class NpuInfo:
    """All that the table says."""

    version: str | None
    chips: tuple[Chip, ...] = ()
    processes: tuple[Process, ...] = field(default=())


_VERSION = re.compile(r"Version:\s*([\w.]+)")
_PAIR = re.compile(r"(\d+)\s*/\s*(\d+)")
_BUS = re.compile(r"^(?:[0-9A-Fa-f]{4}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d$|^NA$")


def parse_npu_smi(text: str) -> NpuInfo:
    """Read the table; whatever is cut or odd is left out, nothing raises.

    A chip takes two rows: card number, name, health, then chip number, bus and memory. Rows are told apart by what
    their second cell holds, not by widths, which differ between builds.
    """
    version = _VERSION.search(text)
    chips: list[Chip] = []
    processes: list[Process] = []
    first: list[str] | None = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.lstrip().startswith("|") else []
        if len(cells) >= 4 and cells[1].isdigit():
            process = _process(cells)
            if process is not None:
                processes.append(process)
        elif len(cells) == 3 and re.match(r"^\d+\s+\S", cells[0]) and not _BUS.match(cells[1]):
            first = cells
        elif len(cells) == 3 and _BUS.match(cells[1]) and re.match(r"^\d+", cells[0]) and first is not None:
            chips.append(_chip(first, cells))
            first = None
    return NpuInfo(version[1] if version else None, tuple(chips), tuple(processes))


def _chip(first: list[str], second: list[str]) -> Chip:
    card, _, name = first[0].partition(" ")
    numbers = first[2].split()
    usage = second[2].split()
    pairs = [(int(used), int(total)) for used, total in _PAIR.findall(second[2])]
    used, total = pairs[-1] if pairs else (None, None)
    return Chip(
        card=int(card),
        chip=int(re.match(r"\d+", second[0])[0]),  # type: ignore[index]  # the caller has matched it
        name=name.strip(),
        health=first[1],
        power_w=_float(numbers[0]) if numbers else None,
        temperature_c=_int(numbers[1]) if len(numbers) > 1 else None,
        bus_id=None if second[1] == "NA" else second[1],
        ai_core_percent=_int(usage[0]) if usage else None,
        memory_used_mb=used,
        memory_total_mb=total,
    )


def _process(cells: list[str]) -> Process | None:
    place = cells[0].split()
    if not place or not all(part.isdigit() for part in place):
        return None
    return Process(int(place[0]), int(place[1]) if len(place) > 1 else 0, int(cells[1]), cells[2], _int(cells[3]))


def _int(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,12}", text) else None


def _float(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,9}(?:\.\d{1,6})?", text) else None
