"""Twelve whole scripts: labelled places, expected results, and their runs on the simulated NPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from unisono.migrate.engine import migrate_text
from unisono.migrate.findings import Options, Target

HERE = Path(__file__).parent
BEFORE = sorted((HERE / "scripts" / "before").glob("*.py"))


@pytest.mark.parametrize("target", list(Target))
@pytest.mark.parametrize("script", BEFORE, ids=lambda path: path.stem)
def test_the_script_becomes_what_is_expected_and_stays_so(script: Path, target: Target) -> None:
    once = migrate_text(script.read_text(encoding="utf-8"), Options(target=target))
    assert once.after == (HERE / "scripts" / f"after_{target}" / script.name).read_text(encoding="utf-8")
    assert migrate_text(once.after, Options(target=target)).after == once.after


def test_precision_and_recall_on_the_labelled_scripts_are_what_the_documentation_says() -> None:
    done = subprocess.run([sys.executable, str(HERE / "measure.py")], capture_output=True, text=True, check=True)
    figures = done.stdout.strip().splitlines()[-1]
    assert figures in (HERE.parents[1] / "docs" / "migrate.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("script", BEFORE, ids=lambda path: path.stem)
def test_lines_without_a_label_keep_their_text(script: Path) -> None:
    """Comments, help texts, messages and names that only look like CUDA are all found again in the result."""
    before = script.read_text(encoding="utf-8")
    after = {line.strip() for line in migrate_text(before, Options()).after.splitlines()}
    for line in before.splitlines():
        if "#:" not in line and "scaled_loss" not in line:
            assert line.strip() in after
