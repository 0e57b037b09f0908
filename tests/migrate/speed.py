"""Lines a second of `unisono migrate` over a tree: this project's twelve scripts, copied until there are enough lines.

python tests/migrate/speed.py [LINES] [JOBS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from unisono.migrate.findings import Options
from unisono.migrate.tree import gather, migrate_files

SCRIPTS = Path(__file__).parent / "scripts" / "before"


def main(lines: int = 50_000, jobs: int = 2) -> None:
    """Build the tree, migrate it once, print the figures."""
    sources = [path.read_text(encoding="utf-8") for path in sorted(SCRIPTS.glob("*.py"))]
    with tempfile.TemporaryDirectory() as folder:
        written = count = 0
        while written < lines:
            text = sources[count % len(sources)]
            (Path(folder) / f"script_{count:04}.py").write_text(text, encoding="utf-8")
            written, count = written + text.count("\n"), count + 1
        start = time.perf_counter()
        results = migrate_files(gather([Path(folder)]), Options(), jobs)
        seconds = time.perf_counter() - start
    places = sum(len(result.findings) for result in results)
    print(
        f"{written:,} lines in {count} files, {places:,} findings, {jobs} processes: {seconds:.1f} s, {written / seconds:,.0f} lines/s"
    )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
