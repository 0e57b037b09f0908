"""Logs of many ranks read as one list of events: whose, when, what. Streams; holds only the lines that matter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from unisono.doctor.knowledge import GENERIC, entries, patterns

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_RANK_PREFIX = re.compile(r"^\s*\[(?:rank|default|trainer|worker)?\s?(\d+)\]\s?:?\s?")
_RANK_INSIDE = re.compile(r"\[rank(\d+)\]|\bRankID:(\d+)|\brank[ =:](\d+)\b")
_RANK_FILE = re.compile(
    r"rank[_-]?(\d+)|(?:^|[_/-])(\d+)(?:[_/](?:stdout|stderr))?\.(?:log|txt)$|(?:^|/)(\d+)/(?:stdout|stderr)\.log$"
)
_NODE_FILE = re.compile(r"node[_-]?(\w+)|host[_-]?(\w+)")
# CANN's dates join date and time by "-" and end in milliseconds and microseconds; others use "T" or a blank.
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)[-T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,3})(?:[.,]?(\d{3}))?)?")
_GLOG = re.compile(r"\b[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6})")
_CODE = re.compile(r"\b(E[A-Z0-9]\d{4}|ERR\d{5})\b")
_OWN = re.compile(r"\berror ([A-Z]\d{3}):")
_NUMBER = re.compile(r"(?:error code is|errorCode|ret(?:code)?|result)\s*[=:]?\s*\[?(\d{6})\b")
_PHASE = re.compile(r"\bin (start|data|forward|backward|reduce|update|evaluate|save) of step (\d+)")
# A cheap look before the expensive ones: lines without any of these hold no known error.
_WORTH = re.compile(
    r"E[A-Z0-9]\d{4}|ERR\d{5}|rror|RROR|xception|ailed|Fail|imeout|imed out|ignal|SIG|illed|peer|pipe|refused|memory|Memory|MEMORY|NaN|nan|"
    r"[Bb]us|symbol|No space|quota|denied|Read-only|Fault|fault|assert|not (?:found|compiled|set|known|contiguous|finite)|"
    r"contiguous|fall back|"
    r"sign of life|injected|EADDRINUSE|in use|GLIBC|CXXABI|No module|central directory|truncated|Ran out|finished reduction|"
    r"all tensors|socket"
)
_LINE_LIMIT = 4000
LOG_SUFFIXES = frozenset({".log", ".txt", ".out", ".err", ".json", ""})


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
    """Position among all events of its file."""
    phase: str | None = None
    step: int | None = None

    @property
    def is_collateral(self) -> bool:
        """True when such a line follows from another rank's failure."""
        return entries()[self.code].collateral

    @property
    def is_generic(self) -> bool:
        """True when the code says only that there was an error."""
        return GENERIC.match(self.code) is not None


def read_events(
    lines: Iterable[str], name: str, *, rank: int | None = None, node: str | None = None
) -> Iterator[Event]:
    """The known events of one log, in its order."""
    known = entries()
    when: float | None = None
    own_rank = rank
    order = 0
    for number, raw in enumerate(lines, 1):
        if len(raw) > _LINE_LIMIT:
            raw = raw[:_LINE_LIMIT]
        # Times stand on other lines than errors; follow the clock on lines that show one at all.
        if "20" in raw and (stamp := time_of(raw)) is not None:
            when = stamp
        if _WORTH.search(raw) is None:
            continue
        text = _ANSI.sub("", raw).rstrip()
        here, text = _rank_of(text, own_rank)
        codes = codes_of(text, known)
        if not codes:
            continue
        phase = _PHASE.search(text)
        for code in codes:
            yield Event(
                code,
                text.strip()[:400],
                f"{name}:{number}",
                here,
                node,
                when,
                order,
                phase[1] if phase else None,
                int(phase[2]) if phase else None,
            )
            order += 1


def codes_of(text: str, known: Iterable[str] | None = None) -> list[str]:
    """The known codes in a line: written out in either of CANN's styles, as a number, or by its words."""
    table = entries() if known is None else known
    found = [code for code in dict.fromkeys(_CODE.findall(text)) if code in table]
    found += [code for code in dict.fromkeys(_OWN.findall(text)) if code in table]
    found += [code for code in dict.fromkeys(_NUMBER.findall(text)) if code in table and code not in found]
    if found:
        return found
    return next(([code] for code, pattern in patterns() if pattern.search(text)), [])


def time_of(text: str) -> float | None:
    """The first time in a line, as seconds since 1970; local clocks are taken as they are."""
    match = _TIME.search(text)
    try:
        if match is not None:
            year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
            milli, micro = int((match[7] or "0").ljust(3, "0")), int(match[8] or 0)
            return datetime(year, month, day, hour, minute, second).timestamp() + milli / 1e3 + micro / 1e6
        match = _GLOG.search(text)
        if match is not None:
            month, day, hour, minute, second, micro = (int(part) for part in match.groups())
            return datetime(datetime.now().year, month, day, hour, minute, second, micro).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return None


def rank_and_node_of(path: Path, root: Path) -> tuple[int | None, str | None]:
    """Whose log a file is, by its name and folders."""
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    rank = _RANK_FILE.search(name)
    node = _NODE_FILE.search(name)
    return (
        int(next(group for group in rank.groups() if group is not None)) if rank else None,
        next(group for group in node.groups() if group is not None) if node else None,
    )


def log_files(folder: Path) -> list[Path]:
    """Every file below a folder that may be a log, sorted; plog folders included."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix.lower() in LOG_SUFFIXES]
    return [
        path
        for path in found
        if path.name not in ("recipe.json", "manifest.json", "summary.json", "failure.json", "metrics.jsonl")
    ]


def _rank_of(text: str, own: int | None) -> tuple[int | None, str]:
    """The rank a line speaks of, and the line without its prefix."""
    prefix = _RANK_PREFIX.match(text)
    if prefix is not None:
        return int(prefix[1]), text[prefix.end() :]
    inside = _RANK_INSIDE.search(text)
    if inside is not None and own is None:
        return int(next(group for group in inside.groups() if group is not None)), text
    return own, text
