"""An explanation as lines for a person, in English or Chinese."""

from __future__ import annotations

import os

from unisono.doctor.explain import Explanation

_WORDS = {
    "en": {
        "first": "failed first",
        "rank": "rank",
        "node": "node",
        "in": "in",
        "step": "step",
        "cause": "cause",
        "remedy": "remedy",
        "evidence": "seen",
        "collateral": "followed from it",
        "also": "also seen",
        "source": "source",
        "unknown": "nothing known was found",
        "last": "the last lines that look like an error:",
        "none": "and no line that looks like an error",
    },
    "zh": {
        "first": "最先失败",
        "rank": "rank",
        "node": "节点",
        "in": "阶段",
        "step": "步",
        "cause": "原因",
        "remedy": "处理",
        "evidence": "依据",
        "collateral": "由此引发",
        "also": "另外出现",
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


def explanation_lines(explanation: Explanation, lang: str) -> list[str]:
    """What happened, where, why, what to do; then what followed from it."""
    words = _WORDS[lang]
    if explanation.entry is None:
        lines = [_who(explanation, words)] if explanation.rank is not None else []
        lines.append(words["unknown"] + ("" if explanation.last_lines else f", {words['none']}"))
        if explanation.last_lines:
            lines += [words["last"], *(f"  | {text}" for text in explanation.last_lines)]
        return lines
    entry = explanation.entry
    lines = [f"{entry.code}: {entry.title[lang]}"]
    if explanation.rank is not None or explanation.node is not None:
        lines.append(_who(explanation, words))
    lines += [f"  {words['cause']}: {entry.cause[lang]}", f"  {words['remedy']}: {entry.remedy[lang]}"]
    lines += [f"  {words['evidence']}: {event.where}: {event.text[:200]}" for event in explanation.evidence]
    if explanation.collateral:
        lines.append(
            f"  {words['collateral']}: "
            + ", ".join(f"{code} x {count}" for code, count in explanation.collateral.items())
        )
    if explanation.also:
        lines.append(f"  {words['also']}: {', '.join(explanation.also)}")
    lines.append(f"  {words['source']}: {entry.source}")
    return lines


def _who(explanation: Explanation, words: dict[str, str]) -> str:
    node = f" ({words['node']} {explanation.node})" if explanation.node is not None else ""
    rank = f"{words['rank']} {explanation.rank}" if explanation.rank is not None else ""
    phase = f", {words['in']} {explanation.phase}" if explanation.phase else ""
    step = f" ({words['step']} {explanation.step})" if explanation.phase and explanation.step is not None else ""
    return f"  {words['first']}: {rank}{node}{phase}{step}"
