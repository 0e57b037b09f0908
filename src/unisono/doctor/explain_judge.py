"""Who failed first: events of all logs on one clock, causes before what follows from them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from unisono.doctor.explain_result import Consequence, Explanation, note, ranges
from unisono.doctor.knowledge import (
    ENDED_BY_LAUNCHER,
    HEARTBEAT_LOST,
    PASSED_ON,
    PROCESS_ENDED,
    PROGRAM_EXCEPTION,
    SILENT_RANK,
    entry_of,
)
from unisono.doctor.logs import Event, Reading
from unisono.doctor.logs_clock import skew

# A cause that is told later than this after a suspect is a consequence of it: agents and kernels report late, not as late.
_REPORTED_WITHIN_S = 60.0
# After a rank has lost its peers, what it says within this time comes of that.
_AFTERMATH_S = 600.0
_SAME_REPORT_S = 2.0
_SAME_REPORT_LINES = 15
# Wrappers and exit codes add nothing to the list of what followed.
_SAY_NOTHING = frozenset({PASSED_ON, PROCESS_ENDED})
_SIGNAL_CODES = frozenset({"X131", "X132", "X142", PROCESS_ENDED})


def judge(readings: list[Reading]) -> Explanation:
    """The earliest failure that is no consequence of another; its cause, and what followed from it."""
    notes = _on_one_clock(readings)
    _name_processes(readings)
    events = _last_life([event for reading in readings for event in reading.events])
    failures = [event for event in events if event.kind != "note"]
    aftermath = _aftermath(failures)
    own = [event for event in failures if id(event) not in aftermath]
    first = _first_cause(own, readings)
    if first is None:
        return _without_cause(readings, events, failures, notes)
    report = _report_of(first, own)
    telling = first if _stands_alone(first) else min(report, key=lambda e: (_vagueness(e), e.order))
    return conclude(telling, report, failures, readings, notes)


def conclude(
    telling: Event, report: list[Event], failures: list[Event], readings: list[Reading], notes: list[dict[str, str]]
) -> Explanation:
    """The explanation around the event that names the cause."""
    entry = entry_of(telling.code)
    here = [event for event in report if event is not telling]
    phase = telling.phase or next((event.phase for event in here if event.phase), "") or entry.phase
    step = next((event.step for event in [telling, *here] if event.step is not None), None)
    alike = {event.rank for event in failures if event.code == telling.code and event.rank is not None}
    if len(alike) > 1 and telling.kind in ("cause", "suspect"):
        notes = [*notes, note(f"ranks {ranges(alike)} say the same", f"rank {ranges(alike)} 报同样的错误")]
    later = [e for e in failures if e.kind == "cause" and e not in report and e.code != telling.code]
    others = dict.fromkeys(
        f"{e.code} (rank {e.rank})" if e.rank is not None else e.code for e in sorted(later, key=_when)
    )
    return Explanation(
        entry=entry,
        first_rank=telling.rank,
        first_node=telling.node,
        phase=phase or None,
        step=step,
        time=telling.time,
        evidence=(telling, *sorted(here, key=_vagueness)[:2]),
        collateral=_consequences(telling, readings),
        others=tuple(others)[:8],
        notes=tuple(notes),
    )


def _first_cause(own: list[Event], readings: list[Reading]) -> Event | None:
    causes = sorted((event for event in own if event.kind == "cause"), key=_when)
    suspects = sorted((event for event in own if event.kind == "suspect"), key=_when)
    named = {reading.root.rank for reading in readings if reading.root is not None and reading.root.exit_code != -15}
    if causes and causes[0].time is None:
        # Without a clock the launcher's word decides, then the order of the files.
        causes.sort(key=lambda event: (event.rank not in named, _when(event)))
    if causes and suspects:
        cause, suspect = causes[0].time, suspects[0].time
        late = cause is not None and suspect is not None and cause > suspect + _REPORTED_WITHIN_S
        return suspects[0] if late else causes[0]
    return next(iter(causes or suspects), None)


def _without_cause(
    readings: list[Reading], events: list[Event], failures: list[Event], notes: list[dict[str, str]]
) -> Explanation:
    """Every rank only waited for another, or nothing known is there."""
    waiting = sorted((event for event in failures if event.kind == "collateral"), key=_when)
    generic = sorted((event for event in failures if event.kind == "generic"), key=_when)
    if waiting:
        silent = _silent_rank(readings, {event.rank for event in failures if event.kind == "collateral"}, notes)
        if silent is not None:
            shown = min(waiting, key=lambda e: (e.code != HEARTBEAT_LOST, e.code == ENDED_BY_LAUNCHER, _when(e)))
            return conclude(silent, [silent, shown], failures, readings, notes)
    ended = [e for e in generic if e.code == PROCESS_ENDED and e.rank not in {w.rank for w in waiting}]
    pool = ended or ([] if waiting else generic) or waiting or sorted(events, key=_when)
    if pool:
        report = _report_of(pool[0], events)
        telling = min(report, key=lambda e: (_vagueness(e), e.order)) if pool[0].kind == "generic" else pool[0]
        found = conclude(telling, report, failures, readings, notes)
        if telling.kind in ("note", "generic"):
            return replace(found, last_lines=tuple(line for reading in readings for line in reading.error_lines)[-5:])
        if len({event.rank for event in waiting}) > 1:
            said = note(
                "every rank here only waited for another; the cause is in a log that is not here, or on the network",
                "这里的每个 rank 都只是在等待；原因在未提供的日志或网络中",
            )
            found = replace(found, notes=(*found.notes, said))
        return found
    return Explanation(
        entry=None,
        last_lines=tuple(line for reading in readings for line in reading.error_lines)[-5:],
        notes=tuple(notes),
    )


def _silent_rank(readings: list[Reading], waiting: set[int | None], notes: list[dict[str, str]]) -> Event | None:
    """The rank that the waiting ones name, or the one whose log ends without an error of its own."""
    logs = {reading.rank: reading for reading in readings if reading.rank is not None}
    votes: Counter[int] = Counter()
    for reading in readings:
        votes.update(reading.blamed)
    known = {rank for rank in (*logs, *waiting) if rank is not None}
    quiet = set(logs) - {rank for rank in waiting if rank is not None}
    missing = set(range(max(known) + 1)) - known if known and len(known) > 1 else set()
    named = [rank for rank, _ in votes.most_common() if rank not in waiting]
    work: dict[int, int] = {}
    for reading in readings:
        work.update(reading.work)
    behind = [rank for rank, number in work.items() if number < max(work.values())]
    if named:
        rank, reason = named[0], note("other ranks name it as the one they waited for", "其他 rank 指出在等待它")
    elif quiet and len(known) > 1:
        rank = min(quiet, key=lambda r: _or_last(logs[r].last_time))
        reason = note("its log is the one without an error", "只有它的日志中没有错误")
    elif missing:
        rank, reason = min(missing), note("there is no log of it", "没有它的日志")
    elif behind:
        rank = min(behind, key=lambda r: work[r])
        reason = note("it is behind the others in collectives", "它的集合通信次数落后于其他 rank")
    else:
        return None
    notes.append(note(f"rank {rank}: {reason['en']}", f"rank {rank}：{reason['zh']}"))
    log = logs.get(rank)
    text = f"last line: {log.last_line}" if log and log.last_line else "no log of this rank"
    where = (log.last_where or log.name) if log else "-"
    return Event(
        SILENT_RANK, text, where, rank, log.node if log else None, log.last_time if log else None, log.lines if log else 0, "suspect"
    )  # fmt: skip


def _aftermath(failures: list[Event]) -> set[int]:
    """Events (by identity) of ranks that had lost their peers before."""
    lost: dict[tuple[int | None, str | None], Event] = {}
    found: set[int] = set()
    for event in sorted(failures, key=lambda e: (e.time if e.time is not None else 0.0, e.order)):
        owner = (event.rank, event.node)
        before = lost.get(owner)
        if event.kind == "collateral" and event.rank is not None and before is None:
            lost[owner] = event
        elif before is not None and event.kind != "collateral" and not _one_report(before, event):
            apart = abs((event.time or 0.0) - (before.time or 0.0)) if event.time and before.time else 0.0
            if apart <= _AFTERMATH_S:
                found.add(id(event))
    return found


def _report_of(first: Event, events: Iterable[Event]) -> list[Event]:
    """Events of one report: the same owner's, close by."""
    return [
        e for e in events if e is first or (e.rank == first.rank and e.node == first.node and _one_report(first, e))
    ]


def _one_report(one: Event, other: Event) -> bool:
    if one.where.rsplit(":", 1)[0] == other.where.rsplit(":", 1)[0]:
        return abs(one.order - other.order) <= _SAME_REPORT_LINES
    return one.time is not None and other.time is not None and abs(one.time - other.time) <= _SAME_REPORT_S


def _stands_alone(event: Event) -> bool:
    # An exception whose message holds nothing known is the program's own, whatever is said while it is handled.
    return event.code == PROGRAM_EXCEPTION and event.kind == "cause"


def _vagueness(event: Event) -> int:
    """0 for what names a cause; more for numbers, wrappers, signals."""
    order = {"cause": 0, "suspect": 4, "collateral": 5, "generic": 8, "note": 9}[event.kind]
    if event.code in _SIGNAL_CODES:
        return order + 3
    return order + (
        2 if event.code.startswith("ERR") or event.code == PROGRAM_EXCEPTION else 1 if event.code.isdigit() else 0
    )


def _consequences(first: Event, readings: list[Reading]) -> tuple[Consequence, ...]:
    ranks: dict[str, set[int]] = defaultdict(set)
    lines: Counter[str] = Counter()
    for reading in readings:
        kinds = {(event.code, event.rank): event.kind for event in reading.events}
        for (code, rank), count in reading.counts.items():
            kind = kinds.get((code, rank), entry_of(code).kind)
            follows = kind == "collateral" or (kind in ("suspect", "generic") and rank != first.rank)
            if follows and code not in _SAY_NOTHING and not (code == first.code and rank == first.rank):
                lines[code] += count
                ranks[code] |= {rank} if rank is not None else set()
    return tuple(Consequence(code, tuple(sorted(ranks[code])), count) for code, count in lines.most_common(8))


def _on_one_clock(readings: list[Reading]) -> list[dict[str, str]]:
    """Shift the times of logs whose clock differs, by the steps that ranks speak of; says what was shifted."""
    timed = [reading for reading in readings if reading.steps]
    if len(timed) < 2:
        return []
    reference = max(timed, key=lambda reading: len(reading.steps))
    by_node: dict[str, float] = {}
    shifts: dict[int, float] = {}
    for reading in timed:
        shifts[id(reading)] = ahead = skew(reading.steps, reference.steps)
        if ahead and reading.node is not None:
            by_node.setdefault(reading.node, ahead)
    notes = []
    for reading in readings:
        ahead = shifts.get(id(reading), 0.0) or by_node.get(reading.node or "", 0.0)
        if not ahead:
            continue
        reading.events = [replace(e, time=e.time - ahead) if e.time is not None else e for e in reading.events]
        reading.last_time = reading.last_time - ahead if reading.last_time is not None else None
        notes.append(
            note(
                f"the clock of {reading.name} runs {ahead:+.1f} s against {reference.name}; its times were corrected",
                f"{reading.name} 的时钟与 {reference.name} 相差 {ahead:+.1f} 秒，已校正",
            )
        )
    return notes[:4]


def _name_processes(readings: list[Reading]) -> None:
    """Give plog's events the rank that torch_npu named for their process."""
    ranks = {(reading.node, pid): rank for reading in readings for pid, rank in reading.processes.items()}
    for reading in readings:
        for position, event in enumerate(reading.events):
            rank = ranks.get((event.node, event.process)) if event.process is not None else None
            if event.rank is None and rank is not None:
                reading.events[position] = replace(event, rank=rank)


def _last_life(events: list[Event]) -> list[Event]:
    """Only the last attempt that says anything ended the job."""
    lives = [event.attempt for event in events if event.attempt is not None and event.kind != "note"]
    return [event for event in events if not lives or event.attempt in (None, max(lives))]


def _when(event: Event) -> tuple[bool, float, int]:
    return (event.time is None, event.time or 0.0, event.order)


def _or_last(seconds: float | None) -> float:
    return float("inf") if seconds is None else seconds
