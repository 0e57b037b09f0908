"""An explanation as lines for a person, in English or Chinese."""

from __future__ import annotations

import os

from unisono.doctor.explain_result import Consequence, Explanation, ranges
from unisono.doctor.knowledge import LANGUAGES, entry_of
from unisono.doctor.logs_clock import clock_text
from unisono.errors import UserError

_WORDS = {
    "en": {
        "first": "failed first",
        "rank": "rank",
        "ranks": "ranks",
        "node": "node",
        "in": "in",
        "step": "step",
        "at": "at",
        "cause": "cause",
        "remedy": "remedy",
        "evidence": "seen",
        "frame": "raised at",
        "collateral": "followed from it",
        "others": "came later",
        "note": "note",
        "source": "source",
        "unknown": "nothing known was found",
        "last": "the last lines that look like an error:",
        "none": "and no line that looks like an error",
    },
    "zh": {
        "first": "最先失败",
        "rank": "rank",
        "ranks": "rank",
        "node": "节点",
        "in": "阶段",
        "step": "步",
        "at": "时间",
        "cause": "原因",
        "remedy": "处理",
        "evidence": "依据",
        "frame": "抛出位置",
        "collateral": "由此引发",
        "others": "随后出现",
        "note": "说明",
        "source": "来源",
        "unknown": "未发现已知错误",
        "last": "最后几行疑似错误：",
        "none": "也没有疑似错误的行",
    },
}


def default_language() -> str:
    """zh where the locale is Chinese, else en."""
    locale = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG") or ""
    return "zh" if locale.lower().startswith("zh") else "en"


def choose_language(wanted: str | None) -> str:
    """The language asked for, else the locale's.

    Raises:
        UserError: H204 a language that is not there.
    """
    language = wanted or default_language()
    if language not in LANGUAGES:
        raise UserError.unknown("H204", "language", language, LANGUAGES)
    return language


def explanation_lines(explanation: Explanation, lang: str) -> list[str]:
    """What happened, where, why, what to do; then what followed from it."""
    words = _WORDS[lang]
    entry = explanation.entry
    lines = [f"{entry.code}: {entry.title[lang]}"] if entry is not None else []
    who = _who(explanation, words)
    if who:
        lines.append(f"  {words['first']}: {who}")
    if entry is not None:
        lines += [f"  {words['cause']}: {entry.cause[lang]}", f"  {words['remedy']}: {entry.remedy[lang]}"]
    for event in explanation.evidence:
        lines.append(f"  {words['evidence']}: {event.where}: {event.text[:200]}")
        if event.frame:
            lines.append(f"  {words['frame']}: {event.frame}")
    for item in explanation.collateral:
        lines.append(f"  {words['collateral']}: {_consequence(item, lang)}")
    if explanation.others:
        lines.append(f"  {words['others']}: {', '.join(explanation.others)}")
    lines += [f"  {words['note']}: {note[lang]}" for note in explanation.notes]
    if entry is None:
        lines.append(words["unknown"] + ("" if explanation.last_lines else f", {words['none']}"))
    if explanation.last_lines:
        lines += [words["last"], *(f"  | {text}" for text in explanation.last_lines)]
    if entry is not None:
        lines.append(f"  {words['source']}: {entry.source}{f' ({entry.date})' if entry.date else ''}")
    return lines


def _who(explanation: Explanation, words: dict[str, str]) -> str:
    parts = []
    if explanation.first_rank is not None:
        parts.append(f"{words['rank']} {explanation.first_rank}")
    if explanation.first_node is not None:
        parts.append(f"{words['node']} {explanation.first_node}")
    if not parts and explanation.time is None:
        return ""  # a code alone has no place; its usual phase says nothing about a run
    if explanation.phase:
        step = f" ({words['step']} {explanation.step})" if explanation.step is not None else ""
        parts.append(f"{words['in']} {explanation.phase}{step}")
    if explanation.time is not None:
        parts.append(f"{words['at']} {clock_text(explanation.time)}")
    return ", ".join(parts)


def _consequence(item: Consequence, lang: str) -> str:
    words = _WORDS[lang]
    name = words["ranks"] if len(item.ranks) > 1 else words["rank"]
    whose = f", {name} {ranges(item.ranks)}" if item.ranks else ""
    return f"{item.code} x {item.lines}{whose} ({entry_of(item.code).title[lang]})"
