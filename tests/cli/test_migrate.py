"""The command `unisono migrate` as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = "import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\nprint(torch.cuda.get_arch_list())\n"


def unisono(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "unisono", "migrate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    return path


def test_without_options_a_diff_is_printed_and_nothing_is_written(script: Path) -> None:
    done = unisono("train.py", cwd=script.parent)
    assert done.returncode == 0
    assert done.stdout.startswith("--- a/train.py\n+++ b/train.py\n")
    assert "M203" in done.stderr
    assert script.read_text() == SOURCE


def test_the_printed_diff_applies_with_patch(script: Path) -> None:
    diff = unisono("train.py", cwd=script.parent).stdout
    patched = subprocess.run(
        ["git", "apply", "-"], input=diff, text=True, cwd=script.parent, capture_output=True, check=False
    )
    assert patched.returncode == 0, patched.stderr
    assert "Linear(2, 2).npu()" in script.read_text()


def test_check_answers_no_until_nothing_is_left(script: Path) -> None:
    assert unisono("--check", script).returncode == 1
    script.write_text("import torch\nimport torch_npu\n\nmodel = torch.nn.Linear(2, 2).npu()\n")
    assert unisono("--check", script).returncode == 0


def test_write_changes_the_file_and_a_second_run_changes_nothing(script: Path) -> None:
    assert unisono("--write", script).returncode == 0
    once = script.read_text()
    assert "import torch_npu\n" in once
    assert "1 files, 6 lines: 0 changed" in unisono("--write", script).stderr
    assert script.read_text() == once


def test_reports_are_written_in_three_forms(script: Path) -> None:
    names = [script.parent / f"report{ending}" for ending in (".json", ".md", ".html")]
    unisono(script, *[part for name in names for part in ("--report", name)])
    assert json.loads(names[0].read_text())["summary"]["left"] == 1
    assert names[1].read_text().startswith("# Migration to npu\n")
    assert names[2].read_text().startswith("<!doctype html>")


def test_a_file_that_does_not_parse_is_reported_and_the_rest_is_written(script: Path) -> None:
    (script.parent / "bad.py").write_text("x = torch.cuda.(\n")
    done = unisono("--write", script.parent)
    assert done.returncode == 1
    assert "M001" in done.stderr
    assert ".npu()" in script.read_text()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--to", "tpu", "train.py"], "G107"),
        (["absent.py"], "G101"),
        ([], "G101"),
        (["--write", "--check", "train.py"], "G109"),
        (["--report", "a.pdf", "train.py"], "G106"),
        (["--only", "Z9", "train.py"], "G108"),
        (["--jobs", "-1", "train.py"], "G110"),
        (["--output", "train.py", "train.py"], "G104"),
        (["--try", "'", "train.py"], "G111"),
    ],
)
def test_wrong_requests_are_refused_without_a_traceback(script: Path, arguments: list[str], code: str) -> None:
    done = unisono(*arguments, cwd=script.parent)
    assert done.returncode == 2
    assert f"error {code}:" in done.stderr
    assert "Traceback" not in done.stderr
    assert script.read_text() == SOURCE


def test_the_command_loads_no_torch_and_its_help_no_parser() -> None:
    probe = (
        "import sys; sys.argv = ['unisono', 'migrate', {}]\nfrom unisono.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\nprint([m for m in ('torch', 'libcst') if m in sys.modules])"
    )
    helped = subprocess.run(
        [sys.executable, "-c", probe.format("'--help'")], capture_output=True, text=True, check=True
    )
    assert helped.stdout.strip().endswith("[]")
    listed = subprocess.run(
        [sys.executable, "-c", probe.format("'--rules'")], capture_output=True, text=True, check=True
    )
    assert listed.stdout.strip().endswith("['libcst']")
