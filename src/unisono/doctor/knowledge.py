"""What is known of errors: CANN's and torch_npu's codes, and the sentences of torch, gloo, NCCL, CUDA and the system.

The tables lie beside this file: `ascend.tsv` (a title for each code), `families.tsv` (cause and remedy of codes that
mean the same), `details.tsv` (cause and remedy of a code that deserves its own), `patterns.tsv` (failures known by
their words), and the project's own codes in `unisono/codes`.
"""

from __future__ import annotations

import csv
import functools
import re
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent / "knowledge"
_CODES = Path(__file__).parents[1] / "codes"
LANGUAGES = ("en", "zh")

KINDS = ("cause", "suspect", "collateral", "generic", "note")
"""cause: fails by itself. suspect: a cause, or what a dead peer looks like. collateral: what the others of a failed rank
say. generic: says only that something failed. note: no failure by itself."""

SILENT_RANK = "X138"
PROCESS_ENDED = "X139"
PROGRAM_EXCEPTION = "X141"
PASSED_ON = "X153"
ENDED_BY_LAUNCHER = "X133"
HEARTBEAT_LOST = "X155"
"""Codes that the reading of logs treats apart."""

_MODULES = {
    "EI": "HCCL, collective communication",
    "EJ": "HCCP, the card's communication process",
    "EL": "the driver",
    "EE": "the runtime",
    "EH": "ACL",
    "EK": "profiling",
    "EZ": "operators",
    "E1": "the graph engine",
    "E3": "the operator compiler",
    "E4": "the operator compiler",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One known error, in both languages."""

    code: str
    kind: str
    title: dict[str, str]
    cause: dict[str, str]
    remedy: dict[str, str]
    source: str
    date: str
    """When the source was read, as year-month."""
    phase: str = ""
    """The phase in which it belongs, where it belongs to one."""

    @property
    def collateral(self) -> bool:
        """True when it follows from another rank's failure."""
        return self.kind == "collateral"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A failure that is known by its words; `regex` is tried where one of `needles` stands in the line."""

    code: str
    needles: tuple[str, ...]
    regex: re.Pattern[str]


@functools.cache
def entries() -> dict[str, Entry]:
    """Every entry by code."""
    found = {row["code"]: _ascend_entry(row) for row in _rows(_FOLDER / "ascend.tsv")}
    for row in _rows(_FOLDER / "patterns.tsv"):
        title, cause, remedy = (_both(row, part) for part in ("title", "cause", "remedy"))
        found[row["code"]] = Entry(
            row["code"], row["kind"], title, cause, remedy, row["source"], row["date"], row["phase"]
        )
    chinese = {row["code"]: row for row in _rows(_FOLDER / "own_zh.tsv")}
    for path in sorted(_CODES.glob("*.tsv")):
        for row in _rows(path):
            # What the doctor, the benchmarks and migrate say of themselves has English words alone.
            own = chinese.get(row["code"], {})
            title, cause, remedy = (
                {"en": row[english], "zh": own.get(f"{part}_zh", row[english])}
                for part, english in (("title", "title"), ("cause", "meaning"), ("remedy", "remedy"))
            )
            found[row["code"]] = Entry(row["code"], "cause", title, cause, remedy, "unisono", "")
    return found


@functools.cache
def patterns() -> tuple[Pattern, ...]:
    """Failures known by their words, the more special ones first."""
    return tuple(
        Pattern(row["code"], tuple(row["needles"].split("|")), re.compile(row["pattern"]))
        for row in _rows(_FOLDER / "patterns.tsv")
        if row["needles"]
    )


def module_of(code: str) -> str | None:
    """Which part of CANN a code of its form comes from, known or not; None for other forms."""
    if re.fullmatch(r"E[A-Z0-9]\d{4}", code) is None:
        return None
    return _MODULES.get(code[:2])


def entry_of(code: str) -> Entry:
    """The entry of a code; for a code of CANN that no table holds, what its form tells.

    Raises:
        KeyError: a code of another form that is not known.
    """
    known = entries().get(code)
    module = module_of(code)
    if known is not None or module is None:
        return entries()[code]
    return Entry(
        code,
        "generic",
        {"en": f"a code of {module} that the tables here do not hold", "zh": f"{code[:2]} 系列错误码，不在已知表中"},
        {"en": "The words after the code in the log are the reason.", "zh": "日志中错误码之后的文字即原因。"},
        {
            "en": "Read them, and look the code up in the CANN documentation.",
            "zh": "查看该文字，并在 CANN 文档中查询。",
        },
        "form of the code",
        "",
    )


@functools.cache
def _families() -> dict[str, dict[str, str]]:
    return {row["family"]: row for row in _rows(_FOLDER / "families.tsv")}


@functools.cache
def _details() -> dict[str, dict[str, str]]:
    return {row["code"]: row for row in _rows(_FOLDER / "details.tsv")}


def _ascend_entry(row: dict[str, str]) -> Entry:
    family = _families()[row["family"]]
    own = _details().get(row["code"], {})
    words = own or family
    return Entry(
        row["code"],
        own.get("kind") or family["kind"],
        _both(row, "title"),
        _both(words, "cause"),
        _both(words, "remedy"),
        row["source"],
        row["date"],
        family["phase"],
    )


def _both(row: dict[str, str], part: str) -> dict[str, str]:
    return {lang: row[f"{part}_{lang}"] for lang in LANGUAGES}


def _rows(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
