"""`make bench`: measures side by side and writes docs/benchmarks.md. `--quick` runs each row once, for a smoke test."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from rows import Row, decode_row, reduction_row, step_row, tutorial_row, versions

from unisono.bench.case import machine

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--photographs", type=Path, help="a tar of JPEG photographs, for the decoding row")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    arguments = parser.parse_args()
    repeats = 1 if arguments.quick else 5
    before, rows, notes = os.getloadavg()[0], [], []
    rows.append(step_row("mobilenet_v3_large", 64 if arguments.quick else 224, 1000, repeats))
    rows.append(step_row("resnet50_cifar", 32, 10, repeats))
    if arguments.photographs:
        row, difference = decode_row(arguments.photographs, repeats)
        rows.append(row)
        notes.append(f"Decoding: same boxes, mean difference of pixels {difference:.2f} of 255.")
    if not arguments.quick:
        rows += [tutorial_row(3), reduction_row(3, 11)]
    text = "\n".join([table(rows), "", *notes, f"Load before {before:.1f}, after {os.getloadavg()[0]:.1f}."])
    print(text)
    if arguments.write:
        facts = machine()
        place = f"{time.strftime('%Y-%m-%d')}, {facts['cores']} cores of {facts['processor']}, {versions()}, Python {facts['python']}."
        page = PAGE.read_text(encoding="utf-8")
        head, rest = page.split(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n{place}\n\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    return 0


def table(rows: list[Row]) -> str:
    """The rows in Markdown."""
    lines = ["| work | against | ours | theirs | ratio | spread of ratios | pairs |", "|---|---|---|---|---|---|---|"]
    lines += [
        f"| {row.work} | {row.against} | {row.ours:,.1f} {row.unit} | {row.theirs:,.1f} {row.unit} "
        f"| {row.ratio:.2f} x | {row.spread:.0%} | {row.runs} |"
        for row in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
