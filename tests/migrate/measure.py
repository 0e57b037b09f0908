"""Precision and recall of the findings on the labelled scripts, and how much is rewritten without help.

python tests/migrate/measure.py
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from helpers.labels import labels, places  # noqa: E402  # the line above makes it importable

from unisono.migrate.engine import migrate_text  # noqa: E402  # as above
from unisono.migrate.findings import Options  # noqa: E402  # as above

LOOKS_LIKE_CUDA = re.compile(r"cuda|nccl|gpu|apex", re.IGNORECASE)


def main() -> None:
    """Print a row for each script and the totals."""
    total: Counter[str] = Counter()
    print(
        f"{'script':<26}{'labels':>7}{'found':>7}{'false':>7}{'missed':>7}{'rewritten':>10}{'by hand':>8}{'must stay':>10}"
    )
    for path in sorted((HERE / "scripts" / "before").glob("*.py")):
        row = measure(path.read_text(encoding="utf-8"))
        total.update(row)
        print_row(path.stem, row)
    print_row("total", total)
    print(f"precision {total['hit'] / total['found']:.3f}, recall {total['hit'] / total['labels']:.3f}")


def measure(text: str) -> Counter[str]:
    """Counts for one script. `stay` counts lines that hold a CUDA word and must not change."""
    findings = migrate_text(text, Options()).findings
    wanted, got = labels(text), places(findings)
    labelled = {line for line, _ in wanted}
    words = [n for n, line in enumerate(text.splitlines(), 1) if LOOKS_LIKE_CUDA.search(line.split("#:")[0])]
    return Counter(
        labels=wanted.total(),
        found=got.total(),
        hit=(wanted & got).total(),
        false=(got - wanted).total(),
        missed=(wanted - got).total(),
        rewritten=sum(finding.fixed for finding in findings),
        hand=sum(finding.left for finding in findings),
        stay=sum(n not in labelled for n in words),
    )


def print_row(name: str, row: Counter[str]) -> None:
    """One line of the table."""
    print(
        f"{name:<26}{row['labels']:>7}{row['found']:>7}{row['false']:>7}{row['missed']:>7}"
        f"{row['rewritten']:>10}{row['hand']:>8}{row['stay']:>10}"
    )


if __name__ == "__main__":
    main()
