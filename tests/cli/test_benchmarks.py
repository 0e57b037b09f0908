"""The benchmarks run: every measurement in its quick form, without a word about how long anything took."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The peers' loops install a second environment, too slow for every change: `make bench` runs them.
ROWS = {
    "tutorial": 2,
    "step-mobilenet": 1,
    "step-resnet": 1,
    "decode": 1,
    "scaling-resnet": 4,
    "scaling-mobilenet": 3,
    "overhead": 1,
    "forecast": 1,
    "forecast-zoo": 6,
    "startup": 1,
}

pytestmark = pytest.mark.dist


@pytest.mark.parametrize("name", ROWS)
def test_a_measurement_in_its_quick_form_gives_its_rows_and_keeps_them(name: str, tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text((ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "--quick", "--write", "--page", str(page)]
    done = subprocess.run([*command, "--only", name], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    kept = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    assert list(kept) == [name]
    rows = kept[name]["rows"]
    assert len(rows) >= ROWS[name]
    for row in rows:
        assert math.isfinite(row["ratio"])
        assert row["ratio"] > 0
        assert f"| {row['work']} | {row['against']} |" in page.read_text(encoding="utf-8")
