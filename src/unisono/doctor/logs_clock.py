"""When a line was written: the styles of plog, ISO, Python's logging, glog, torch, asctime and syslog on one clock."""

from __future__ import annotations

import re
import time

# CANN joins date and time by "-" and ends in milliseconds.microseconds; torch's elastic agent joins them by "_".
_FULL = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[-T _](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9})(?:\.(\d{3}))?)?(?:\s?(Z|[+-]\d\d:?\d\d)(?!\d))?"
)
_GLOG = re.compile(r"\b[IWEFD](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{3,9})")
_NAMED = re.compile(r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) ([ \d]\d) (\d\d):(\d\d):(\d\d)(?: (\d{4}))?")
_MONTHS = {
    name: n
    for n, name in enumerate(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1)
}
_STEP = re.compile(r"\b(?:global[_ ])?(?:step|iter|iteration)\b\W{0,3}(\d{1,9})", re.IGNORECASE)


def time_of(text: str, year: int | None = None) -> float | None:
    """The first time in a line, in seconds since 1970.

    A time without a zone counts as it stands, as if it were UTC: the logs of one job are compared among themselves.
    `year` stands in where a style has none; this year unless given.
    """
    match = _FULL.search(text)
    if match is not None:
        fraction = float(f"0.{match[7] or '0'}") + int(match[8] or 0) / 1e6
        return _seconds(match.groups()[:6], fraction - _zone(match[9]))
    match = _GLOG.search(text)
    if match is not None:
        return _seconds((year or _this_year(), *match.groups()[:5]), float(f"0.{match[6]}"))
    match = _NAMED.search(text)
    if match is not None:
        month, day, hour, minute, second, named_year = match.groups()
        return _seconds((named_year or year or _this_year(), _MONTHS[month], day, hour, minute, second), 0.0)
    return None


def clock_text(seconds: float) -> str:
    """`2025-01-02 03:04:05.678`, on the clock that `time_of` reads."""
    whole = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03d}"


def step_times(lines: list[str]) -> dict[int, float]:
    """When each step was first spoken of; ranks that train together speak of a step at nearly the same moment."""
    found: dict[int, float] = {}
    for line in lines:
        step = _STEP.search(line)
        if step is not None and (when := time_of(line)) is not None:
            found.setdefault(int(step[1]), when)
    return found


def skew(own: dict[int, float], reference: dict[int, float]) -> float:
    """Seconds by which a clock runs ahead of the reference, by the steps both speak of; 0 where that is not clear.

    Clear means: at least three common steps, and differences that agree within a fifth of their median.
    """
    differences = sorted(own[step] - reference[step] for step in own.keys() & reference.keys())
    if len(differences) < 3:
        return 0.0
    median = differences[len(differences) // 2]
    quarter = len(differences) // 4
    spread = differences[-1 - quarter] - differences[quarter]
    return median if abs(median) > 2.0 and spread < abs(median) / 5 else 0.0


def _seconds(parts: tuple[str | int | None, ...], fraction: float) -> float | None:
    year, month, day, hour, minute, second = (int(part or 0) for part in parts)
    if not (1970 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 62):
        return None
    return _days(year, month, day) * 86400.0 + hour * 3600 + minute * 60 + second + fraction


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar (March-based years, as in Hinnant's `days_from_civil`)."""
    year -= month <= 2
    era_year = year % 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return (year // 400) * 146097 + era_year * 365 + era_year // 4 - era_year // 100 + day_of_year - 719468


def _zone(text: str | None) -> float:
    if text is None or text == "Z":
        return 0.0
    digits = text[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return float(seconds if text[0] == "+" else -seconds)


def _this_year() -> int:
    return time.gmtime().tm_year
