"""What a user gets wrong in `unisono simulate` is answered at once, with a code and the way out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unisono.cli.main import app
from unisono.errors import UserError

WRONG = [
    ([], "S107"),
    (["--", "nosuchprogram"], "S107"),
    (["--", "python", "nosuch.py"], "S109"),
    (["--", "nosuch.py"], "S109"),
    (["--chip", "310P", "--", "python", "-V"], "S104"),
    (["--memory", "lots", "--", "python", "-V"], "S105"),
    (["--memory", "1KiB", "--", "python", "-V"], "S105"),
    (["--memory", "-1GiB", "--", "python", "-V"], "S105"),
    (["--devices", "0", "--", "python", "-V"], "S103"),
    (["--devices", "99", "--", "python", "-V"], "S103"),
    (["--launch", "both", "--", "python", "-V"], "S108"),
    (["--fault", "rank=1", "--", "python", "-V"], "S106"),
    (["--fault", "rank=one,step=1,kind=hang", "--", "python", "-V"], "S106"),
    (["--fault", "rank=1,step=1,kind=explode", "--", "python", "-V"], "S106"),
    (["--fault", "rank=1,step=1,kind=slow", "--", "python", "-V"], "S106"),
    (["--fault", "rank=1,step=1,kind=slow:fast", "--", "python", "-V"], "S106"),
    (["--fault", "rank=1,step=1,kind=slow:nan", "--", "python", "-V"], "S106"),
    (["--fault", "", "--", "python", "-V"], "S106"),
]


@pytest.mark.parametrize(("arguments", "code"), WRONG)
def test_a_wrong_command_line_is_a_coded_error(
    arguments: list[str], code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    result = CliRunner().invoke(app, ["simulate", *arguments])
    assert isinstance(result.exception, UserError), result.output or repr(result.exception)
    assert (result.exception.code, int(result.exception.exit_code)) == (code, 2)
    assert result.exception.fix
    assert dict(os.environ) == before
    assert list(tmp_path.iterdir()) == []


def test_a_number_of_devices_that_is_no_number_is_a_usage_error() -> None:
    result = CliRunner().invoke(app, ["simulate", "--devices", "two", "--", "python", "-V"])
    assert result.exit_code == 2
    assert "--devices" in result.output
