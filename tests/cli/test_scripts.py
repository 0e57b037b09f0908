"""The model zoo's scripts: the options they take, the command they become, their exit status, their log."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
MODELS = ("resnet50_cifar100", "mobilenetv3_large_imagenet", "resnet50_imagenet")
FAMILY = (
    "env_npu.sh",
    "train_full_1p.sh",
    "train_full_8p.sh",
    "train_performance_1p.sh",
    "train_performance_8p.sh",
    "train_performance_8p_bs32.sh",
    "train_eval_8p.sh",
)
TRAINING = [name for name in FAMILY if name.startswith("train_") and "eval" not in name]


def run_script(
    script: Path, *arguments: str, path: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    first = path or Path(sys.executable).parent
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ASCEND", "PLATFORM", "RANK"))}
    return subprocess.run(
        ["bash", str(script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=190,
        env={**inherited, "PATH": f"{first}:{os.environ['PATH']}", **environment},
    )


@pytest.fixture
def echoing(tmp_path: Path) -> Path:
    """A folder with a `unisono` that shows its arguments and the device, and ends with the status it is told."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "unisono"
    command.write_text(
        '#!/bin/bash\necho "devices ${ASCEND_RT_VISIBLE_DEVICES:-all}"\nprintf "<%s> " "$@"\nexit "${STATUS:-0}"\n',
        encoding="utf-8",
    )
    command.chmod(0o755)
    return folder


@pytest.mark.parametrize("model", MODELS)
def test_each_model_has_the_whole_family(model: str) -> None:
    assert sorted(path.name for path in (SCRIPTS / model).glob("*.sh")) == sorted(FAMILY)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("resnet50_cifar100/train_full_8p.sh", "resnet50_cifar100 8 16 --epochs 200 _bs128_8p_acc"),
        ("resnet50_cifar100/train_full_1p.sh", "resnet50_cifar100 1 16 --epochs 200 _bs16_1p_acc"),
        ("resnet50_cifar100/train_performance_8p.sh", "resnet50_cifar100 8 16 --epochs 2 _bs128_8p_perf"),
        ("resnet50_cifar100/train_performance_1p.sh", "resnet50_cifar100 1 16 --epochs 2 _bs16_1p_perf"),
        ("resnet50_cifar100/train_performance_8p_bs32.sh", "resnet50_cifar100_bs32 8 32 --epochs 2 _bs256_8p_perf"),
        ("mobilenetv3_large_imagenet/train_full_8p.sh", "mobilenetv3_large_imagenet 8 128 --epochs 600 _bs1024_8p_acc"),
        ("mobilenetv3_large_imagenet/train_full_1p.sh", "mobilenetv3_large_imagenet 1 128 --epochs 30 _bs128_1p_acc"),
        ("resnet50_imagenet/train_full_8p.sh", "resnet50_imagenet 8 512 --epochs 90 _bs4096_8p_acc"),
        ("resnet50_imagenet/train_performance_8p_bs32.sh", "resnet50_imagenet 8 32 --steps 100 _bs256_8p_perf"),
    ],
)
def test_a_script_becomes_the_command_of_its_recipe(script: str, expected: str, echoing: Path, tmp_path: Path) -> None:
    recipe, replicas, batch, *length, case = expected.split()
    done = run_script(
        SCRIPTS / script, "--data_path=/data", f"--output={tmp_path / 'out'}", path=echoing, PLATFORM="cpu"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"<train> <{recipe}> ")
    for words in (["--replicas", replicas], ["--batch-size", batch], length, ["--data-path", "/data"]):
        assert f"<{words[0]}> <{words[1]}>" in done.stdout
    assert f"{case}>" in done.stdout
    assert "<--precision>" not in done.stdout
    assert "<--learning-rate>" not in done.stdout


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", TRAINING)
def test_every_training_script_takes_the_zoos_options_and_ends_with_the_commands_status(
    model: str, name: str, echoing: Path, tmp_path: Path
) -> None:
    done = run_script(
        SCRIPTS / model / name,
        "--data_path=/my data",
        "--batch_size=64",
        "--learning_rate=0.3",
        "--devices=2",
        "--steps=5",
        f"--output={tmp_path / 'out'}",
        "--",
        "--seed",
        "3",
        path=echoing,
        STATUS="3",
        ASCEND_DEVICE_ID="5",
        etp_running_flag="true",
    )
    assert done.returncode == 3
    shown = done.stdout
    assert "<--data-path> </my data>" in shown
    assert "<--learning-rate> <0.3>" in shown
    assert "<--platform> <npu> <--devices> <2>" in shown
    assert "<--precision> <O2>" in shown
    assert "<--steps> <5>" in shown
    assert shown.rstrip().endswith("<--seed> <3>")
    assert (tmp_path / "out" / "train_5.log").read_text(encoding="utf-8") == shown
    replicas, batch = (int(shown.split(f"<{key}> <")[1].split(">")[0]) for key in ("--replicas", "--batch-size"))
    assert replicas * batch == 64


def test_one_npu_is_the_one_that_the_harness_chose(echoing: Path, tmp_path: Path) -> None:
    script = SCRIPTS / "resnet50_cifar100" / "train_full_1p.sh"
    out = f"--output={tmp_path / 'out'}"
    assert "devices 6" in run_script(script, out, path=echoing, ASCEND_DEVICE_ID="6").stdout
    assert "devices all" in run_script(script, out, path=echoing, ASCEND_DEVICE_ID="6", PLATFORM="cpu").stdout
    own = run_script(script, out, path=echoing, ASCEND_DEVICE_ID="6", ASCEND_RT_VISIBLE_DEVICES="2")
    assert "devices 2" in own.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--batch_size=100"], "use 96 or 104"),
        (["--batch_size=3"], "use 8 or 8"),
        (["--batch_size=many"], "whole number"),
        (["--batch_size="], "takes a value"),
        (["--lr=0.1"], "unknown option --lr=0.1"),
        (["--data_path", "/data"], "--key=value"),
        (["--output=/proc/none/out"], "another folder"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(arguments: list[str], words: str, echoing: Path) -> None:
    done = run_script(SCRIPTS / "resnet50_cifar100" / "train_full_8p.sh", *arguments, path=echoing, PLATFORM="cpu")
    assert done.returncode == 2
    assert words in done.stderr
    assert "<train>" not in done.stdout


def test_evaluation_takes_the_newest_run_or_the_one_named_and_refuses_without(echoing: Path, tmp_path: Path) -> None:
    script, out = SCRIPTS / "resnet50_cifar100" / "train_eval_8p.sh", tmp_path / "out"
    none = run_script(script, f"--output={out}", path=echoing, PLATFORM="cpu")
    assert none.returncode == 2
    assert "no run of resnet50_cifar100" in none.stderr
    for age, name in ((200, "older"), (100, "newer")):
        (out / "runs" / "resnet50_cifar100" / name).mkdir(parents=True)
        os.utime(out / "runs" / "resnet50_cifar100" / name, (1e9 - age, 1e9 - age))
    newest = run_script(script, f"--output={out}", "--data_path=/d", path=echoing, PLATFORM="cpu")
    assert "<evaluate> <" in newest.stdout
    assert "/newer/> <--platform> <cpu> <--devices> <8> <--data-path> </d>" in newest.stdout
    named = run_script(script, f"--output={out}", "--checkpoint=/c.pt", path=echoing, PLATFORM="cpu")
    assert "<evaluate> </c.pt>" in named.stdout


@pytest.mark.parametrize("model", MODELS)
def test_the_npu_environment_is_harmless_without_a_driver_and_the_same_when_repeated(model: str) -> None:
    script = SCRIPTS / model / "env_npu.sh"
    shown = "env | grep -E '^(ASCEND|HCCL|TASK|PATH|LD_)' | sort; echo \"status $? $-\""
    once = run_script_text(f"set -eu; TASK_QUEUE_ENABLE=2; export TASK_QUEUE_ENABLE; source {script}; {shown}")
    twice = run_script_text(
        f"set -eu; TASK_QUEUE_ENABLE=2; export TASK_QUEUE_ENABLE; source {script}; source {script}; {shown}"
    )
    assert once == twice
    assert "HCCL_WHITELIST_DISABLE=1" in once
    assert "ASCEND_GLOBAL_LOG_LEVEL=3" in once
    # What the user has set stays, and so do the shell's own flags.
    assert "TASK_QUEUE_ENABLE=2" in once
    assert once.splitlines()[-1].startswith("status 0 ")
    assert {"e", "u"} <= set(once.split()[-1])


def run_script_text(text: str) -> str:
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed here")
def test_scripts_are_clean_to_shellcheck() -> None:
    files = [str(SCRIPTS / "common.sh"), *(str(SCRIPTS / model / name) for model in MODELS for name in FAMILY)]
    done = subprocess.run(["shellcheck", "-x", *files], capture_output=True, text=True, check=False, cwd=SCRIPTS)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.dist
@pytest.mark.timeout(400)
def test_a_script_trains_evaluates_and_leaves_the_harness_its_log(tmp_path: Path) -> None:
    small_cifar100(tmp_path / "data")
    out = tmp_path / "out"
    script = SCRIPTS / "resnet50_cifar100" / "train_performance_8p.sh"
    options = [f"--data_path={tmp_path / 'data'}", f"--output={out}", "--devices=2"]
    done = run_script(
        script, *options, "--batch_size=16", "--steps=7", "--", "--model", "resnet20_cifar", PLATFORM="cpu"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    block = done.stdout.partition("------------------ Final result ------------------\n")[2].splitlines()
    assert [line.split(" : ")[0] for line in block[:3]] == [
        "Final Performance images/sec",
        "Final Train Accuracy",
        "E2E Training Duration sec",
    ], done.stdout
    log = (out / "Resnet50_cifar_for_PyTorch_bs16_2p_perf.log").read_text(encoding="utf-8")
    values = dict(line.split(" = ") for line in log.splitlines())
    assert (values["RankSize"], values["BatchSize"]) == ("2", "16")
    assert float(values["ActualFPS"]) > 0
    assert float(values["TrainingTime"]) == pytest.approx(16_000 / float(values["ActualFPS"]), rel=1e-3)
    assert 0 <= float(values["TrainAccuracy"]) <= 100
    evaluation = run_script(
        SCRIPTS / "resnet50_cifar100" / "train_eval_8p.sh", *options[:2], "--devices=1", PLATFORM="cpu"
    )
    assert evaluation.returncode == 0, evaluation.stdout + evaluation.stderr
    assert f"top-1 {values['TrainAccuracy']}% " in evaluation.stdout


def small_cifar100(folder: Path) -> None:
    """Random images in CIFAR-100's layout."""
    folder = folder / "cifar-100-python"
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    for name, count in (("train", 112), ("test", 20)):
        images = generator.integers(0, 256, (count, 3072), dtype=np.uint8)
        labels = [index % 100 for index in range(count)]
        (folder / name).write_bytes(pickle.dumps({b"data": images, b"fine_labels": labels}, protocol=2))
    names = [f"class {index}".encode() for index in range(100)]
    (folder / "meta").write_bytes(pickle.dumps({b"fine_label_names": names}, protocol=2))
