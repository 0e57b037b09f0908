"""The doctor as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from unisono.cli.main import app
from unisono.errors import UserError

QUICK = "environment,devices,host"


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *arguments])


@pytest.fixture(autouse=True)
def _no_vendor_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "HCCL_IF_BASE_PORT"):
        monkeypatch.delenv(name, raising=False)


def test_without_npus_and_gpus_their_checks_fold_into_one_line() -> None:
    lines = doctor("--only", "devices").stdout.splitlines()
    assert lines == ["devices", "  skipped: NPUs, GPUs", "2 skip"]


def test_a_failing_check_gives_exit_code_1_and_one_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_IF_BASE_PORT", "99")
    result = doctor("--only", "environment")
    assert result.exit_code == 1
    assert "FAIL    H114" in result.stdout
    assert result.stdout.count("->") == 1


def test_fix_prints_commands_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_IF_BASE_PORT", "99")
    (line,) = doctor("--only", "environment", "--fix").stdout.splitlines()
    assert line.startswith("unset HCCL_IF_BASE_PORT    # ")


def test_json_holds_code_status_evidence_remedy_and_seconds() -> None:
    findings = json.loads(doctor("--only", QUICK, "--json").stdout)
    assert list(findings) == ["environment", "devices", "host"]
    for finding in (row for rows in findings.values() for row in rows):
        assert {"code", "title", "status", "evidence", "remedy", "seconds"} <= set(finding)


def test_a_planted_stand_in_is_named_first(tmp_path: Path) -> None:
    stand_in = tmp_path / "bin" / "npu-smi"
    rows = "| 3     910B3 | Critical | 90.0 40 0 / 0 |\n| 0 | 0000:C1:00.0 | 0 0 / 0 3318 / 65536 |"
    stand_in.write_text(f"#!/bin/sh\necho '{rows}'\n")
    stand_in.chmod(0o755)
    result = doctor("--only", "devices")
    assert result.exit_code == 1
    first = next(line for line in result.stdout.splitlines() if "FAIL" in line)
    assert "H131" in first
    assert "NPU 3 chip 0: Critical" in first


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--only", "nothing"], "H195"),
        (["--devices", "1"], "H197"),
        (["--nnodes", "2", "--devices", "2"], "H197"),
        (["--nnodes", "2", "--devices", "2", "--rdzv-endpoint", "n0:x"], "H197"),
        (["--only", "devices", "--bundle", "/no/such/folder/b.zip"], "H196"),
    ],
)
def test_wrong_requests_are_refused_by_code(arguments: list[str], code: str) -> None:
    error = doctor(*arguments).exception
    assert isinstance(error, UserError)
    assert error.code == code


def test_doctor_runs_where_torch_cannot_be_imported() -> None:
    program = (
        "import sys; sys.modules['torch'] = None; "
        f"sys.argv = ['unisono', 'doctor', '--only', '{QUICK},versions']; "
        "from unisono.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    assert "H101" in done.stdout


@pytest.mark.dist
@pytest.mark.slow
def test_every_collective_is_right_on_two_processes() -> None:
    result = doctor("--only", "collectives", "--devices", "2", "--platform", "cpu", "--json")
    findings = json.loads(result.stdout)["collectives"]
    assert [(row["code"], row["status"]) for row in findings] == [(f"H{number}", "ok") for number in range(181, 189)]
