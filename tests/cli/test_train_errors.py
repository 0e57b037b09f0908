"""What a user gets wrong is answered before anything runs, with a code and the way out, and leaves no empty run folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from unisono.cli.main import app
from unisono.errors import UserError


def code_of(*arguments: str) -> str:
    """The code that the command answers with."""
    result = CliRunner().invoke(app, list(arguments))
    assert isinstance(result.exception, UserError), result.output or repr(result.exception)
    assert result.exception.fix
    return result.exception.code


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nosuch"], "R101"),
        (["nosuch.toml"], "R101"),
        (["mlp_fashion_mnist", "--set", "foo.bar=1"], "R104"),
        (["mlp_fashion_mnist", "--set", "optimizer.momentom=1"], "R104"),
        (["mlp_fashion_mnist", "--set", "optimizer.momentum=2"], "R105"),
        (["mlp_fashion_mnist", "--set", "nonsense"], "R103"),
        (["mlp_fashion_mnist", "--epochs", "1", "--steps", "2"], "R106"),
        (["mlp_fashion_mnist", "--devices", "0"], "P105"),
        (["mlp_fashion_mnist", "--devices", "many"], "P105"),
        (["mlp_fashion_mnist", "--platform", "tpu"], "P101"),
        (["mlp_fashion_mnist", "--platform", "cuda", "--simulate"], "P107"),
        (["mlp_fashion_mnist", "--devices", "2", "--nnodes", "4:2"], "J208"),
        (["mlp_fashion_mnist", "--devices", "2", "--resume", "auto"], "C107"),
    ],
)
def test_a_wrong_command_line_is_a_coded_error(arguments: list[str], code: str, tmp_path: Path) -> None:
    platform = [] if "--platform" in arguments else ["--platform", "cpu"]
    assert code_of("train", *arguments, *platform, "--runs-dir", str(tmp_path)) == code
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["verify", "mlp_fashion_mnist", "--worlds", "1"], ["verify", "mlp_fashion_mnist", "--worlds", "a,b"]]
)
def test_verify_refuses_worlds_it_cannot_compare(arguments: list[str]) -> None:
    assert code_of(*arguments) == "V102"


@pytest.mark.parametrize(
    "words", [["--devices", "2"], ["--devices=2"], ["-n2"], ["--run-dir", "x"], ["--resume", "auto"]]
)
def test_verify_refuses_options_that_would_make_its_runs_the_same(words: list[str]) -> None:
    assert code_of("verify", "mlp_fashion_mnist", *words, "--platform", "cpu") == "V106"


def test_verify_refuses_runs_that_used_another_number_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "localhost"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MASTER_PORT", "29999")
    words = ["verify", "mlp_fashion_mnist", "--worlds", "1,2", "--steps", "1", "--platform", "cpu"]
    assert code_of(*words, "--set", "evaluate.every='0 steps'") == "V106"


def test_compare_refuses_folders_without_a_checkpoint(tmp_path: Path) -> None:
    assert code_of("compare", str(tmp_path), str(tmp_path)) == "V101"


def test_evaluate_refuses_a_checkpoint_that_is_not_there(tmp_path: Path) -> None:
    assert code_of("evaluate", str(tmp_path), "--platform", "cpu") == "C101"


def test_plan_prints_sums_that_can_be_checked_by_hand() -> None:
    result = CliRunner().invoke(app, ["plan", "resnet50_cifar10", "--devices", "2"])
    assert result.exit_code == 0
    assert "global batch 128 = 16 x 8 replicas on 2 devices (4 each)" in result.output
    assert "50,000 images / 128 -> 390 steps an epoch (80 images dropped)" in result.output
    assert code_of("plan", "resnet50_cifar10", "--devices", "9") == "J101"
    assert code_of("plan", "resnet50_cifar10", "--train-images", "100") == "J102"
