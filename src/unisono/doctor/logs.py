"""One log read as events: whose, when, what. Streams; holds the lines that matter and counts the rest."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from unisono.doctor import logs_scan as scan
from unisono.doctor.knowledge import (
    ENDED_BY_LAUNCHER,
    PASSED_ON,
    PROCESS_ENDED,
    PROGRAM_EXCEPTION,
    Entry,
    Pattern,
    entries,
    entry_of,
    module_of,
    patterns,
)
from unisono.doctor.logs_clock import step_times, time_of
from unisono.doctor.logs_owner import ANSI, process_and_rank_in, process_of, rank_inside, split_prefix
from unisono.doctor.logs_trace import SUMMARY_FIELD, RootCause, Trace, ended_process, read_root_cause, read_trace

_CODE = re.compile(r"(?<![A-Za-z0-9_])(E[A-Z0-9]\d{4}|ERR\d{5})(?![A-Za-z0-9])")
# A code that no table holds counts only where it stands as CANN writes it: `EI0099: ` or `Title(EI0099)`.
_CODE_FORM = re.compile(r"(?<![A-Za-z0-9_])(E[A-Z]\d{4})(?=: \[PID|\)?: )")
_NUMBER = re.compile(r"(?:error code is|rrorCode|[Rr]et(?:code)?|result)\s*[=:]?\s*\[?(\d{6})(?!\d)")
_UNISONO = re.compile(r"\berror ([A-Z]\d{3}): ")
_PHASE = re.compile(r"\bin (start|data|forward|backward|reduce|update|evaluate|save|end) of step (\d+)")
_WARNING = re.compile(r"\[?W\d{4} |\[W |\bWARN(?:ING)?\b|[Ww]arning:|\bretry|\bretried")
_BLAMED = (
    re.compile(r"remote rank:? ?\[?(\d+)"),
    re.compile(r"received errors while waiting for send/recv from rank (\d+)"),
    re.compile(r"Ranks? (\d+)[\d, ]* failed to pass monitoredBarrier"),
    re.compile(r"Cluster Exception Location\[IP/ID\]:\[[^/\]]*/(\d+)\]"),
    re.compile(r"no response from rank (\d+)"),
)
_STARTS = re.compile(r"rank \d+ starts, attempt (\d+)")
_WORK = re.compile(r"\[Rank (\d+)\].*(?:SeqNum|last enqueued work)[=:] ?(\d+)")
_KEPT_OF_A_KIND = 30
_CACHE_SIZE = 20_000
# Beyond so many kinds of lines in a block it pays to know which needles the block holds at all.
_MANY_KINDS = 300
_EDGE_BYTES = 1 << 16
_DIGITS = b"0123456789"
_HEX = re.compile(rb"0x[0-9a-fA-F]+")
_TELLING_NUMBERS = re.compile(
    rb"E[A-Z0-9]\d{4}|ERR\d{5}|exitcode: -?\d+|ignal \d+|(?:code is|rrorCode|etcode|ret|esult)\W{0,4}\d{6}|error [A-Z]\d{3}"
)
_MAY_HAVE_PREFIX = re.compile(rb"[\s\x1b]|\[(?:rank|Rank|default|trainer|worker|\d)|rank|\d{1,4}:")
# The agent's exit codes below zero are signals; these have entries of their own.
_SIGNALS = {-9: "X131", -11: "X132", -15: "X133", -2: "X143", -6: "X142", -7: "X104"}


@dataclass(frozen=True, slots=True)
class Event:
    """One line that says something known."""

    code: str
    text: str
    where: str
    """file:line"""
    rank: int | None
    node: str | None
    time: float | None
    """Seconds since 1970 by the writer's own clock, as far as the log tells."""
    order: int
    """Number of its line."""
    kind: str = "cause"
    """As in the knowledge table; a warning of a waiting rank is a note."""
    phase: str = ""
    step: int | None = None
    frame: str = ""
    """file:line of the program, for exceptions."""
    process: int | None = None
    attempt: int | None = None
    """Which life of the job it belongs to, where the log says so."""

    @property
    def is_generic(self) -> bool:
        """True when the code says only that there was an error."""
        return self.kind == "generic"


@dataclass(slots=True)
class Reading:
    """What one log gave."""

    name: str
    rank: int | None = None
    node: str | None = None
    attempt: int | None = None
    events: list[Event] = field(default_factory=list)
    counts: Counter[tuple[str, int | None]] = field(default_factory=Counter)
    """(code, rank) of every line, kept or not."""
    error_lines: list[str] = field(default_factory=list)
    """The last lines that look like an error."""
    last_line: str = ""
    last_where: str = ""
    last_time: float | None = None
    steps: dict[int, float] = field(default_factory=dict)
    """When it spoke of which step, near its start and its end."""
    ranks: set[int] = field(default_factory=set)
    processes: dict[int, int] = field(default_factory=dict)
    """Process to rank, where torch_npu said so."""
    blamed: Counter[int] = field(default_factory=Counter)
    """Ranks that others said they waited for."""
    work: dict[int, int] = field(default_factory=dict)
    """The last collective of each rank by its sequence number, as NCCL's watchdog tells."""
    root: RootCause | None = None
    lines: int = 0


def read_events(
    lines: Iterable[str], name: str, *, rank: int | None = None, node: str | None = None
) -> Iterator[Event]:
    """The known events of a text given as lines, in its order."""
    raw = "\n".join(line.rstrip("\n") for line in lines).encode("utf-8", "replace")
    reader = _Reader(Reading(name, rank, node))
    reader.read(scan.Block(raw + b"\n", 1, True))
    yield from reader.reading.events


def read_log(
    stream: BinaryIO, name: str, *, rank: int | None = None, node: str | None = None, attempt: int | None = None
) -> Reading:
    """Everything that one log tells, read once from its start to its end."""
    reader = _Reader(Reading(name, rank, node, attempt))
    for block in scan.blocks(stream):
        reader.read(block)
    return reader.reading


def codes_of(text: str, known: Iterable[str] | None = None) -> list[str]:
    """The codes in a line: written out in either of CANN's styles, as a number, unisono's own, or by its words."""
    table = entries() if known is None else known
    found = written_codes(text, table)
    if found or (word := code_by_words(text)) is None:
        return found
    return [word]


def written_codes(text: str, table: Iterable[str]) -> list[str]:
    """The codes that stand in a line as codes."""
    found = dict.fromkeys(code for code in _CODE.findall(text) if code in table)
    found |= dict.fromkeys(code for code in _CODE_FORM.findall(text) if module_of(code) is not None)
    found |= dict.fromkeys(code for code in _NUMBER.findall(text) if code in table)
    found |= dict.fromkeys(code for code in _UNISONO.findall(text) if code in table)
    return list(found)


def code_by_words(text: str, held: frozenset[bytes] | None = None) -> str | None:
    """The failure that a line is known for by its words; `held` are the needles of its block, where they are known."""
    for needle, pattern in _needles(held):
        if needle in text and pattern.regex.search(text):
            return pattern.code
    return None


@functools.lru_cache(maxsize=256)
def _needles(held: frozenset[bytes] | None) -> tuple[tuple[str, Pattern], ...]:
    return tuple(
        (needle, pattern)
        for pattern in patterns()
        for needle in pattern.needles
        if held is None or any(short in needle.encode() for short in held)
    )


class _Reader:
    """Walks through the blocks of one log."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self._known = entries()
        self._seen: dict[bytes, tuple[str, ...]] = {}
        self._time: float | None = None
        self._held: frozenset[bytes] | None = None

    def read(self, block: scan.Block) -> None:
        line, counted = block.first_line, 0
        exception_at = frames_end = -1
        data = block.data
        if block.first_line == 1:
            self._note_steps(data[:_EDGE_BYTES])
        spans, self._held = scan.candidates(data)
        new_kinds = len(self._seen)
        for start, end in spans:
            if self._held is None and len(self._seen) - new_kinds > _MANY_KINDS:
                self._held = scan.held_needles(data)
            line += data.count(b"\n", counted, start)
            counted = start
            raw = data[start:end]
            if b"starts, attempt" in raw and (life := _STARTS.search(raw.decode("utf-8", "replace"))) is not None:
                self.reading.attempt = int(life[1])
                continue
            if scan.TRACEBACK in raw:
                trace = read_trace(data, start)
                if trace is not None:
                    self._take_trace(block, trace, start)
                    exception_at, frames_end = trace.at, max(trace.at, frames_end)
            elif b"Root Cause" in raw and (root := read_root_cause(data, start)) is not None:
                self._take_root(root, line, block, start)
            if start == exception_at or SUMMARY_FIELD.match(raw) is not None:
                continue
            # The source lines that a traceback quotes say nothing of their own.
            if start >= frames_end or not _is_frame(raw):
                self._take(raw, line, block, start)
        self._close(block)

    def _take(self, raw: bytes, line: int, block: scan.Block, start: int) -> None:
        """One candidate line."""
        codes = self._codes(raw)
        if not codes:
            return
        text: str | None = None
        owner = self.reading.rank
        if owner is None or _MAY_HAVE_PREFIX.match(raw) is not None:
            text = raw.decode("utf-8", "replace")
            owner = self._owner(text)
        for code in codes:
            if self.reading.counts[code, owner] >= _KEPT_OF_A_KIND:
                self.reading.counts[code, owner] += 1
                continue
            text = raw.decode("utf-8", "replace") if text is None else text
            self._note_hints(text)
            self._keep(entry_of(code), text, line, block, start)

    def _codes(self, raw: bytes) -> tuple[str, ...]:
        """The codes of a line. Lines of one kind differ in numbers only, and a log may hold a million of them."""
        key = (_HEX.sub(b"", raw) if b"0x" in raw else raw).translate(None, _DIGITS)
        numbers = _TELLING_NUMBERS.findall(raw)
        if numbers:
            key += b"".join(numbers)
        found = self._seen.get(key)
        if found is None:
            if len(self._seen) >= _CACHE_SIZE:
                self._seen.clear()
            found = self._seen[key] = self._codes_anew(raw.decode("utf-8", "replace"), bool(numbers))
        return found

    def _codes_anew(self, text: str, has_numbers: bool) -> tuple[str, ...]:
        codes = written_codes(text, self._known) if has_numbers else []
        if not codes or entry_of(codes[0]).kind == "generic":
            codes += [word] if (word := code_by_words(text, self._held)) is not None else []
        ended = ended_process(text) if PROCESS_ENDED in codes else None
        return tuple(_SIGNALS.get(ended[0], code) if ended and code == PROCESS_ENDED else code for code in codes)

    def _owner(self, text: str) -> int | None:
        """Whose line: by its prefix, else by its file, else by what it names."""
        rank, _, rest = split_prefix(ANSI.sub("", text))
        if rank is not None or self.reading.rank is not None:
            return rank if rank is not None else self.reading.rank
        return rank_inside(rest)

    def _keep(
        self, entry: Entry, text: str, line: int, block: scan.Block, start: int, trace: Trace | None = None
    ) -> Event | None:
        reading = self.reading
        rest = split_prefix(ANSI.sub("", text))[2]
        owner = self._owner(text)
        if owner is not None:
            reading.ranks.add(owner)
        reading.counts[entry.code, owner] += 1
        if reading.counts[entry.code, owner] > _KEPT_OF_A_KIND:
            return None
        phase = _PHASE.search(rest)
        kind = entry.kind
        # The agent warns that it ends the others, and means it; other warnings of waiting are often followed by success.
        weak = kind in ("collateral", "suspect", "generic") and entry.code != ENDED_BY_LAUNCHER
        if trace is None and weak and _WARNING.search(rest[:200]):
            kind = "note"
        event = Event(
            entry.code,
            ANSI.sub("", rest).strip()[:400],
            f"{reading.name}:{line}",
            owner,
            reading.node,
            self._when(block, start, text),
            line,
            kind,
            phase[1] if phase else trace.phase if trace else "",
            int(phase[2]) if phase else None,
            trace.frame if trace else "",
            process_of(reading.name, rest),
            reading.attempt,
        )
        reading.events.append(event)
        return event

    def _take_trace(self, block: scan.Block, trace: Trace, start: int) -> None:
        """The exception at a traceback's end; where CANN's or other words in its message say more, they decide."""
        data = block.data
        end = data.find(b"\n", trace.at)
        text = data[trace.at : end if end >= 0 else len(data)][:2000].decode("utf-8", "replace").rstrip()
        message = "\n".join(trace.message)
        codes = written_codes(trace.exception, self._known)
        word = code_by_words(trace.exception)
        code = codes[0] if codes and entry_of(codes[0]).kind != "generic" else word or (codes[0] if codes else None)
        entry = entry_of(code or PROGRAM_EXCEPTION)
        rest = "\n".join(trace.message[1:])
        if entry.code == PROGRAM_EXCEPTION and (written_codes(rest, self._known) or _any_words(trace.message[1:])):
            entry = replace(entry, kind="generic")
        if "Caught" in trace.exception and "DataLoader worker" in trace.exception:
            entry = entry_of(PASSED_ON)
        self._note_hints(message)
        self._keep(entry, text, block.line_number(trace.at), block, trace.at if trace.at > start else start, trace)

    def _take_root(self, root: RootCause, line: int, block: scan.Block, start: int) -> None:
        self.reading.root = root
        code = _SIGNALS.get(root.exit_code or 0, PROCESS_ENDED)
        event = self._keep(entry_of(code), root.text, line, block, start)
        if event is not None:
            self.reading.events[-1] = replace(
                event,
                rank=root.rank if root.rank is not None else event.rank,
                node=event.node or root.host,
                time=event.time if root.time is None else root.time,
            )

    def _note_hints(self, text: str) -> None:
        """Who is whose process, whom a rank waited for, how far its collectives are."""
        if "RankID" in text and (pair := process_and_rank_in(text)) is not None:
            self.reading.processes[pair[0]] = pair[1]
        for regex in _BLAMED:
            match = regex.search(text)
            if match is not None:
                self.reading.blamed[int(match[1])] += 1
        work = _WORK.search(text) if "SeqNum" in text or "last enqueued" in text else None
        if work is not None:
            self.reading.work[int(work[1])] = int(work[2])

    def _when(self, block: scan.Block, start: int, text: str) -> float | None:
        """The line's own time, else that of the nearest line before it that has one."""
        own = time_of(text)
        if own is None:
            before = block.data[max(0, start - 8192) : start].decode("utf-8", "replace").splitlines()
            own = next((when for line in reversed(before[-80:]) if (when := time_of(line)) is not None), self._time)
        self._time = own if own is not None else self._time
        return own

    def _note_steps(self, raw: bytes) -> None:
        for step, when in step_times(raw.decode("utf-8", "replace").splitlines()).items():
            self.reading.steps.setdefault(step, when)

    def _close(self, block: scan.Block) -> None:
        reading, data = self.reading, block.data
        reading.lines = block.first_line + data.count(b"\n") - (1 if data.endswith(b"\n") else 0)
        reading.error_lines = (reading.error_lines + _last_error_lines(data))[-5:]
        tail = data[-_EDGE_BYTES:].decode("utf-8", "replace").splitlines()
        if block.is_last or len(data) > _EDGE_BYTES // 2:
            self._note_steps(data[-_EDGE_BYTES:])
        filled = [line for line in tail[-200:] if line.strip()]
        if filled:
            reading.last_line = ANSI.sub("", filled[-1]).strip()[:300]
            reading.last_where = f"{reading.name}:{reading.lines}"
        stamp = next((when for line in reversed(filled) if (when := time_of(line)) is not None), None)
        reading.last_time = stamp if stamp is not None else reading.last_time


def _is_frame(raw: bytes) -> bool:
    return split_prefix(ANSI.sub("", raw[:200].decode("utf-8", "replace")))[2][:1].isspace()


def _any_words(lines: Iterable[str]) -> bool:
    # What a dying process says last ("Segmentation fault") is no part of the message.
    return any(code_by_words(line) not in (None, *_SIGNALS.values()) for line in lines)


def _last_error_lines(data: bytes) -> list[str]:
    """The last five lines of a block that look like an error, by looking from its end."""
    found: dict[int, str] = {}
    for look in scan.ERROR_LOOKS:
        at = len(data)
        for _ in range(5):
            at = data.rfind(look, 0, at)
            if at < 0:
                break
            start, end = scan.line_around(data, at)
            found[start] = ANSI.sub("", data[start:end].decode("utf-8", "replace")).strip()[:300]
            at = start
    return [found[start] for start in sorted(found)[-5:]]
