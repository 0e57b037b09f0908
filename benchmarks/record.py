"""What was measured: rows, the JSON that keeps them between runs, and the table of docs/benchmarks.md."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table: ours against theirs."""

    work: str
    against: str
    unit: str
    """Of `ours` and `theirs`: ms or s, of which less is better, or images/s."""
    ours: float
    theirs: float
    ratio: float
    """How many times better ours is: the median of the pairs' ratios."""
    spread: float
    """(greatest - least) / median of the pairs' ratios."""
    pairs: int
    least: float | None = None
    """The ratio that is asked for."""
    note: str = ""


@dataclass(frozen=True)
class Measurement:
    """The rows of one measurement, with where and how they came about."""

    rows: list[Row]
    command: str
    place: dict[str, Any] = field(default_factory=dict)
    """Date, machine, versions, load, seconds."""
    said: list[str] = field(default_factory=list)
    """What could not be measured, and why."""


def pair(work: str, against: str, ours: list[float], theirs: list[float], unit: str, **more: Any) -> Row:
    """A row from figures taken in turn. Seconds are told in ms where the unit says so."""
    scale = 1e3 if unit == "ms" else 1.0
    less_is_better = unit in ("ms", "s")
    ratios = [b / a if less_is_better else a / b for a, b in zip(ours, theirs, strict=True)]
    return Row(
        work=work,
        against=against,
        unit=unit,
        ours=median(ours) * scale,
        theirs=median(theirs) * scale,
        ratio=median(ratios),
        spread=(max(ratios) - min(ratios)) / median(ratios),
        pairs=len(ratios),
        **more,
    )


def load(path: Path) -> dict[str, Measurement]:
    """The measurements kept so far by name; none where there is no file."""
    if not path.is_file():
        return {}
    kept = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: Measurement([Row(**row) for row in one["rows"]], one["command"], one["place"], one["said"])
        for name, one in kept.items()
    }


def keep(path: Path, measurements: dict[str, Measurement]) -> None:
    """Write all measurements, replacing the file at once."""
    text = json.dumps({name: asdict(one) for name, one in measurements.items()}, indent=2)
    new = path.with_suffix(".new")
    new.write_text(text + "\n", encoding="utf-8")
    new.replace(path)


def table(rows: list[Row]) -> str:
    """The rows in Markdown."""
    lines = [
        "| work | against | ours | theirs | ratio | asked | spread | pairs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        asked = f"{row.least:.2f}" if row.least is not None else ""
        lines.append(
            f"| {row.work} | {row.against} | {row.ours:,.1f} {row.unit} | {row.theirs:,.1f} {row.unit} "
            f"| {row.ratio:.2f} | {asked} | {row.spread:.0%} | {row.pairs} |"
        )
    return "\n".join(lines)


def page_text(measurements: dict[str, Measurement]) -> str:
    """The measured part of the page: one table, then what each line's figures come from."""
    parts = [table([row for one in measurements.values() for row in one.rows]), ""]
    for name, one in measurements.items():
        place = one.place
        parts.append(
            f"- **{name}**: `{one.command}`, {place['date']}, {place['seconds']:.0f} s on {place['cores']} cores of "
            f"{place['processor']}, {place['versions']}; load {place['load_before']:.1f} before, {place['load_after']:.1f} after."
        )
        notes = dict.fromkeys([row.note for row in one.rows if row.note] + one.said)
        parts += [f"  {note}" for note in notes]
    return "\n".join(parts)


def write_page(page: Path, measurements: dict[str, Measurement]) -> None:
    """Put the measured part between the page's marks."""
    text = page.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    page.write_text(f"{head}{BEGIN}\n{page_text(measurements)}\n{END}{rest.split(END)[1]}", encoding="utf-8")
