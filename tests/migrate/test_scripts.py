"""Twelve whole scripts: labelled places, expected results, and their runs on the simulated NPU."""

from __future__ import annotations

import os
import socket
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["cifar_flat.py"],
        ["apex_amp_distributed.py", "--local_rank", "0", "--clip"],
        ["metric_logger.py", "--amp"],
        ["gpt_globals.py"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_the_portable_script_trains_where_there_is_no_accelerator(arguments: list[str], tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    script = HERE / "scripts" / "after_portable" / arguments[0]
    command = [sys.executable, str(script), *arguments[1:]]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "loss" in done.stdout.lower() or "trained on cpu" in done.stdout
