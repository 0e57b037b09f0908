"""Why a run died: events of all ranks on one clock, the first that is no consequence of another, its cause and remedy."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unisono.doctor.knowledge import Entry, entries
from unisono.doctor.logs import Event, log_files, rank_and_node_of, read_events
from unisono.errors import UserError, nearest_names


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """The answer."""

    entry: Entry | None
    """What is known of the first failure; None when nothing known was found."""
    rank: int | None = None
    node: str | None = None
    phase: str | None = None
    step: int | None = None
    evidence: tuple[Event, ...] = ()
    """The lines that show it, the first first."""
    collateral: dict[str, int] = field(default_factory=dict)
    """Codes of what followed on other ranks, with how many lines."""
    also: tuple[str, ...] = ()
    """Other codes that are no consequence, in order of time."""
    last_lines: tuple[str, ...] = ()
    """Where nothing known was found: the lines that look most like an error."""

    def to_plain(self) -> dict[str, Any]:
        """For JSON."""
        known = self.entry
        return {
            "code": known.code if known else None,
            "title": known.title if known else None,
            "cause": known.cause if known else None,
            "remedy": known.remedy if known else None,
            "source": known.source if known else None,
            "rank": self.rank,
            "node": self.node,
            "phase": self.phase,
            "step": self.step,
            "evidence": [
                {"where": event.where, "text": event.text, "code": event.code, "rank": event.rank}
                for event in self.evidence
            ],
            "collateral": self.collateral,
            "also": list(self.also),
            "last_lines": list(self.last_lines),
        }


def explain_code(code: str) -> Explanation:
    """What is known of one code.

    Raises:
        UserError: H201 an unknown code, with the nearest ones.
    """
    wanted = code.strip().upper()
    found = entries().get(wanted)
    if found is None:
        near = nearest_names(wanted, entries())
        hint = (
            f"did you mean {' or '.join(near)}?" if near else "give a code such as EI0006, 507048 or ERR02200, or a log"
        )
        raise UserError(
            "H201", f"unknown code {code!r}", f"{len(entries())} codes are known, and this is none of them", hint
        )
    return Explanation(entry=found)


def explain_text(lines: Iterable[str], name: str = "standard input") -> Explanation:
    """Explain one log."""
    kept = _Tail()
    return _judge(list(read_events(kept.watch(lines), name)), kept.lines)


def explain_path(path: Path) -> Explanation:
    """Explain a log file or a folder of logs.

    Raises:
        UserError: H202 nothing there, H203 a folder without logs.
    """
    if path.is_dir():
        return explain_folder(path)
    if not path.is_file():
        raise UserError(
            "H202",
            f"no file or folder {path}",
            "there is nothing to read",
            "give a code, a log file, a folder of logs, or - for standard input",
        )
    kept = _Tail()
    rank, node = rank_and_node_of(path, path.parent)
    with open(path, encoding="utf-8", errors="replace") as lines:
        return _judge(list(read_events(kept.watch(lines), path.name, rank=rank, node=node)), kept.lines)


def explain_folder(path: Path) -> Explanation:
    """Explain the logs of many ranks and nodes; a run folder's own failure record decides who was first.

    Raises:
        UserError: H203 a folder without logs.
    """
    files = log_files(path)
    record = _failure_record(path)
    if not files and record is None:
        raise UserError(
            "H203",
            f"no logs in {path}",
            "looked for files ending in .log, .txt, .out, .err or without an ending",
            "give the folder that holds the ranks' logs",
        )
    events: list[Event] = []
    kept = _Tail()
    for file in files:
        rank, node = rank_and_node_of(file, path)
        with open(file, encoding="utf-8", errors="replace") as lines:
            events += read_events(kept.watch(lines), file.relative_to(path).as_posix(), rank=rank, node=node)
    if record is not None:
        return _judge_record(record, events, kept.lines)
    return _judge(events, kept.lines)


def _failure_record(path: Path) -> dict[str, Any] | None:
    try:
        record = json.loads((path / "failure.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("rank"), int) else None


def _judge_record(record: dict[str, Any], events: list[Event], tail: list[str]) -> Explanation:
    """The launcher saw who died first; its record is read like a log of that rank, before all others."""
    text = "\n".join(str(record.get(part) or "") for part in ("message", "traceback", "signal"))
    own = list(read_events(text.splitlines(), "failure.json", rank=record["rank"]))
    causes = (
        [event for event in own if not event.is_collateral]
        or [e for e in events if e.rank == record["rank"] and not e.is_collateral]
        or own
    )
    others = [event for event in events if event.rank != record["rank"]]
    return Explanation(
        entry=entries()[_most_telling(causes).code] if causes else None,
        rank=record["rank"],
        phase=record.get("phase"),
        step=record.get("step"),
        evidence=tuple(causes[:3]),
        collateral=dict(Counter(event.code for event in others if event.is_collateral)),
        last_lines=() if causes else tuple(text.splitlines()[-5:] or tail),
    )


def _judge(events: list[Event], tail: list[str]) -> Explanation:
    """The earliest event that is no consequence; ranks whose clocks differ are ordered by their own lines."""
    if not events:
        return Explanation(entry=None, last_lines=tuple(tail))
    causes = [event for event in events if not event.is_collateral]
    pool = sorted(causes or events, key=lambda event: (event.time is None, event.time or 0.0, event.order))
    first = pool[0]
    near = [event for event in pool if event.rank == first.rank and event.node == first.node and _close(event, first)]
    telling = _most_telling(near)
    phase = next((event for event in events if event.phase is not None and event.rank == first.rank), None)
    also = dict.fromkeys(event.code for event in pool if event.code != telling.code and not event.is_generic)
    return Explanation(
        entry=entries()[telling.code],
        rank=telling.rank,
        node=telling.node,
        phase=phase.phase if phase else None,
        step=phase.step if phase else None,
        evidence=(telling, *[event for event in near if event is not telling][:2]),
        collateral=dict(Counter(event.code for event in events if event.is_collateral and event is not telling)),
        also=tuple(also)[:8],
    )


def _close(event: Event, first: Event) -> bool:
    """Lines of one report: within two seconds, or within a dozen events where there is no clock."""
    if event.time is not None and first.time is not None:
        return abs(event.time - first.time) <= 2
    return abs(event.order - first.order) <= 12


def _most_telling(events: list[Event]) -> Event:
    """A code that names a cause goes before one that only says that something failed."""
    return next((event for event in events if not event.is_generic), events[0])


class _Tail:
    """Keeps the last lines that look like an error, for when nothing is known."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def watch(self, lines: Iterable[str]) -> Iterable[str]:
        for line in lines:
            if "rror" in line or "xception" in line or "ailed" in line:
                self.lines.append(line.strip()[:300])
                del self.lines[:-5]
            yield line
