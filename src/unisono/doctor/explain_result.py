"""The answer of `unisono explain`: what failed, where first, and what followed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from unisono.doctor.knowledge import LANGUAGES, Entry
from unisono.doctor.logs import Event
from unisono.doctor.logs_clock import clock_text


@dataclass(frozen=True, slots=True)
class Consequence:
    """What other ranks said because the first one failed."""

    code: str
    ranks: tuple[int, ...]
    lines: int

    def __str__(self) -> str:
        whose = f" on rank{'s' if len(self.ranks) > 1 else ''} {ranges(self.ranks)}" if self.ranks else ""
        return f"{self.code} x {self.lines}{whose}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """The answer."""

    entry: Entry | None
    """What is known of the first failure; None when nothing known was found."""
    first_rank: int | None = None
    first_node: str | None = None
    phase: str | None = None
    step: int | None = None
    time: float | None = None
    """When, on the logs' own clock, in seconds since 1970."""
    evidence: tuple[Event, ...] = ()
    """The lines that show it, the first first."""
    collateral: tuple[Consequence, ...] = ()
    others: tuple[str, ...] = ()
    """Codes that are no consequence and came later, with their ranks, in order of time."""
    last_lines: tuple[str, ...] = ()
    """Where nothing known was found: the lines that look most like an error."""
    notes: tuple[dict[str, str], ...] = ()
    """Remarks on how the answer was found, in both languages."""

    @property
    def code(self) -> str | None:
        """The code of the cause."""
        return self.entry.code if self.entry else None

    @property
    def title(self) -> str | None:
        """The cause in a few English words."""
        return self.entry.title["en"] if self.entry else None

    @property
    def remedy(self) -> str | None:
        """What to do, in English."""
        return self.entry.remedy["en"] if self.entry else None

    def to_plain(self) -> dict[str, Any]:
        """For JSON: texts in both languages."""
        known = self.entry
        words = {part: getattr(known, part) if known else None for part in ("title", "cause", "remedy")}
        return {
            "code": self.code,
            **words,
            "source": known.source if known else None,
            "source_date": known.date if known else None,
            "first_rank": self.first_rank,
            "first_node": self.first_node,
            "phase": self.phase,
            "step": self.step,
            "time": clock_text(self.time) if self.time is not None else None,
            "evidence": [
                {"where": event.where, "text": event.text, "code": event.code, "rank": event.rank, "frame": event.frame}
                for event in self.evidence
            ],
            "collateral": [
                {"code": item.code, "ranks": list(item.ranks), "lines": item.lines} for item in self.collateral
            ],
            "others": list(self.others),
            "last_lines": list(self.last_lines),
            "notes": [dict(note) for note in self.notes],
        }


def note(en: str, zh: str) -> dict[str, str]:
    """A remark in both languages."""
    return dict(zip(LANGUAGES, (en, zh), strict=True))


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as `0-2,5`."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{low}-{high}" if high > low else str(low) for low, high in parts)
