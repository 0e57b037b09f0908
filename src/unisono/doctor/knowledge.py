"""What is known of errors: CANN's and torch_npu's codes, and the sentences of torch, gloo, NCCL, CUDA and the system."""

from __future__ import annotations

import csv
import functools
import re
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent / "knowledge"
_CODES = Path(__file__).parents[1] / "codes"
LANGUAGES = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Entry:
    """One known error, in both languages."""

    code: str
    title: dict[str, str]
    cause: dict[str, str]
    remedy: dict[str, str]
    source: str
    collateral: bool = False
    """True when it follows from another rank's failure."""


# Families whose errors are what the other ranks see when one is gone.
_COLLATERAL_FAMILIES = frozenset({"hccl_wait"})
# Codes that only say "an error was reported"; the cause has a code of its own nearby.
GENERIC = re.compile(r"^(?:ERR\d\d(?:005|100|200|300)|ERR99999|E[A-Z]9999|EZ9903|50000[0-3])$")


@functools.cache
def entries() -> dict[str, Entry]:
    """Every entry by code."""
    families = {row["family"]: row for row in _rows(_FOLDER / "families.tsv")}
    found: dict[str, Entry] = {}
    for row in _rows(_FOLDER / "ascend.tsv"):
        family = families[row["family"]]
        found[row["code"]] = Entry(
            row["code"],
            {lang: row[f"title_{lang}"] for lang in LANGUAGES},
            {lang: family[f"cause_{lang}"] for lang in LANGUAGES},
            {lang: family[f"remedy_{lang}"] for lang in LANGUAGES},
            f"{row['source']}, {row['date']}",
            row["family"] in _COLLATERAL_FAMILIES,
        )
    for row in _rows(_FOLDER / "patterns.tsv"):
        texts = [{lang: row[f"{part}_{lang}"] for lang in LANGUAGES} for part in ("title", "cause", "remedy")]
        found[row["code"]] = Entry(row["code"], texts[0], texts[1], texts[2], row["source"], row["collateral"] == "yes")
    for path in sorted(_CODES.glob("*.tsv")):
        for row in _rows(path):
            same = [dict.fromkeys(LANGUAGES, row[part]) for part in ("title", "meaning", "remedy")]
            found[row["code"]] = Entry(row["code"], same[0], same[1], same[2], "unisono")
    return found


@functools.cache
def patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """(code, pattern) of failures that are known by their words."""
    return tuple((row["code"], re.compile(row["pattern"])) for row in _rows(_FOLDER / "patterns.tsv"))


def _rows(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
