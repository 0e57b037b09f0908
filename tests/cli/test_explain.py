"""`unisono explain` as a person types it: codes, files, folders, a pipe; answers and refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unisono.cli.explain import explain_run
from unisono.cli.main import app
from unisono.errors import UserError


def output_of(*arguments: str, given: str | bytes | None = None) -> str:
    result = CliRunner().invoke(app, ["explain", *arguments], input=given, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def refusal_of(*arguments: str) -> UserError:
    with pytest.raises(UserError) as caught:
        CliRunner().invoke(app, ["explain", *arguments], catch_exceptions=False)
    return caught.value


def test_a_code_is_explained_in_english_and_in_chinese() -> None:
    assert output_of("EI0006", "--lang", "en").startswith("EI0006: connecting to another rank took too long\n  cause: ")
    assert "HCCL_CONNECT_TIMEOUT" in output_of("ei0006", "--lang", "zh")
    assert "处理" in output_of("EI0006", "--lang", "zh")


def test_the_language_is_the_locales(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert "原因" in output_of("EI0006")


def test_a_pipe_is_explained_whatever_its_bytes() -> None:
    assert output_of(given="[rank3]: RuntimeError: NPU out of memory. Tried\n").splitlines()[:2] == [
        "X101: device memory of an NPU is used up",
        "  failed first: rank 3",
    ]
    assert output_of("-", given=b"\xff\xfe\x00 \xc3(").startswith("nothing known was found")
    assert output_of("-", given="").startswith("nothing known was found")


def test_a_folder_is_explained_as_json(tmp_path: Path) -> None:
    (tmp_path / "rank_0.log").write_text("Connection closed by peer\n", encoding="utf-8")
    (tmp_path / "rank_1.log").write_text("OSError: [Errno 28] No space left on device\n", encoding="utf-8")
    found = json.loads(output_of(str(tmp_path), "--json"))
    assert (found["code"], found["first_rank"]) == ("X122", 1)
    assert found["remedy"].keys() == {"en", "zh"}
    assert found["collateral"] == [{"code": "X114", "ranks": [0], "lines": 1}]


def test_wrong_inputs_are_refused_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    (tmp_path / "folder").mkdir()
    for arguments, code in (
        (("EI00O6",), "H201"),
        ((str(tmp_path / "none.log"),), "H202"),
        ((str(tmp_path / "folder"),), "H203"),
        (("EI0006", "--lang", "fr"), "H204"),
        ((str(tmp_path / "empty.log"),), "H207"),
        (("",), "H205"),
        ((sys.executable,), "H206"),
    ):
        error = refusal_of(*arguments)
        assert error.code == code
        assert error.fix


def test_a_named_pipe_is_read_as_a_log(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen([sys.executable, "-c", f"open({str(pipe)!r}, 'w').write('NPU out of memory. Tried\\n')"])
    assert output_of(str(pipe)).startswith("X101")
    assert writer.wait(timeout=30) == 0


def test_the_failure_screen_of_a_run_without_logs_is_empty_and_of_one_with_logs_is_the_answer(tmp_path: Path) -> None:
    assert explain_run(tmp_path) == []
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rank_0.log").write_text("NPU out of memory. Tried\n", encoding="utf-8")
    assert explain_run(tmp_path)[0].startswith("X101")


def test_a_code_is_explained_without_torch_numpy_or_the_recipes_schema() -> None:
    program = (
        "import sys; sys.argv = ['unisono', 'explain', 'EI0006']\n"
        "from unisono.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'torch', 'numpy', 'torchvision', 'unisono.recipe.schema', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}
    )
    assert done.stdout.splitlines()[-1] == "[]"
