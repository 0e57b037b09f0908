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
    physical_id: int = 0
    """The number that /etc/hccn.conf and hccn_tool go by: its own column where a card has two chips, else the card's."""


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
_PAIR = re.compile(r"([0-9]{1,12})\s*/\s*([0-9]{1,12})")
_BUS = re.compile(r"^(?:[0-9A-Fa-f]{4}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9]$")
_FIRST = re.compile(r"^[0-9]{1,6}\s+\S")
_SECOND = re.compile(r"^[0-9]{1,6}(?:\s+(?:[0-9]{1,6}|NA|-))?$")


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
        if len(cells) >= 4 and _int(cells[1]) is not None:
            process = _process(cells)
            if process is not None:
                processes.append(process)
        elif len(cells) == 3 and _is_second(cells, first):
            if first is not None:
                chips.append(_chip(first, cells))
            first = None
        elif len(cells) == 3 and _FIRST.match(cells[0]):
            first = cells
    return NpuInfo(version[1] if version else None, tuple(chips), tuple(processes))


def _is_second(cells: list[str], first: list[str] | None) -> bool:
    """A bus number tells; where it is NA, the health of a card may be NA too, and the order of the rows decides."""
    if not _SECOND.match(cells[0]):
        return False
    return bool(_BUS.match(cells[1])) or (first is not None and cells[1] in ("NA", "-", ""))


def _chip(first: list[str], second: list[str]) -> Chip:
    card, name = first[0].split(maxsplit=1)
    numbers = first[2].split()
    usage = second[2].split()
    pairs = [(int(used), int(total)) for used, total in _PAIR.findall(second[2])]
    used, total = pairs[-1] if pairs else (None, None)
    return Chip(
        card=int(card),
        chip=int(second[0].split()[0]),
        name=name.strip(),
        health=first[1],
        power_w=_float(numbers[0]) if numbers else None,
        temperature_c=_int(numbers[1]) if len(numbers) > 1 else None,
        bus_id=second[1] if _BUS.match(second[1]) else None,
        ai_core_percent=_int(usage[0]) if usage else None,
        memory_used_mb=used,
        memory_total_mb=total,
        physical_id=_int(second[0].split()[-1]) or 0 if len(second[0].split()) > 1 else int(card),
    )


def _process(cells: list[str]) -> Process | None:
    place = [_int(part) for part in cells[0].split()]
    pid = _int(cells[1])
    card = place[0] if place else None
    if card is None or pid is None:
        return None
    return Process(card, (place[1] if len(place) > 1 else None) or 0, pid, cells[2], _int(cells[3]))


def _int(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,12}", text) else None


def _float(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,6})?", text) else None
