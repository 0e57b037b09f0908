"""Writes docs/errors.md from the tables that `unisono explain` reads. `python docs/generate_errors.py`"""

from __future__ import annotations

from pathlib import Path

from unisono.doctor.knowledge import Entry, entries

TARGET = Path(__file__).parent / "errors.md"
_FAMILIES = {
    "B": "bench",
    "C": "checkpoints",
    "D": "data",
    "G": "migrate",
    "H": "doctor and explain",
    "J": "job and launch",
    "M": "models",
    "P": "platforms",
    "R": "recipes",
    "S": "simulator",
    "T": "training",
    "V": "verify and compare",
}


def document() -> str:
    """The whole page."""
    known = entries()
    words = sorted(code for code in known if code.startswith("X"))
    own = sorted(code for code, entry in known.items() if entry.source == "unisono" and code not in words)
    vendor = [code for code in known if code not in own and code not in words]
    lines = [
        "# Errors",
        "",
        "Every code of unisono, then what `unisono explain` knows of CANN, torch_npu, torch, gloo, NCCL and CUDA. Written by",
        "`python docs/generate_errors.py` from the tables in `src/unisono/codes` and `src/unisono/doctor/knowledge`.",
        "",
        "Exit codes: 0 fine; 1 the answer is no; 2 the request cannot be carried out; 3 the run crashed; 4 stopped by a signal after saving.",
    ]
    for letter, name in _FAMILIES.items():
        codes = [code for code in own if code[0] == letter]
        if codes:
            lines += ["", f"## {letter}: {name}"]
            for code in codes:
                lines += ["", *_own(known[code])]
    lines += [
        "",
        "## Failures known by their words",
        "",
        "| code | what | cause | remedy | source |",
        "|---|---|---|---|---|",
    ]
    lines += [_row(known[code]) for code in words]
    lines += [
        "",
        "## Codes of CANN and torch_npu",
        "",
        "| code | what | cause | remedy | source |",
        "|---|---|---|---|---|",
    ]
    lines += [_row(known[code]) for code in vendor]
    return "\n".join(lines) + "\n"


def _own(entry: Entry) -> list[str]:
    # A heading that is the code alone, so that its anchor is the one that error messages name.
    return [f"### {entry.code}", "", f"**{entry.title['en']}.** {entry.cause['en']} *{entry.remedy['en']}*"]


def _row(entry: Entry) -> str:
    source = f"{entry.source} ({entry.date})" if entry.date else entry.source
    cells = (entry.code, entry.title["en"], entry.cause["en"], entry.remedy["en"], source)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
