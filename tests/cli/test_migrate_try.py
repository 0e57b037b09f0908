"""`unisono migrate --try`: what the output of a trial says about CUDA."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from unisono.cli.migrate_try import read_touches

FOLDER = Path("/tmp/copy")
SCRIPTS = Path(__file__).resolve().parents[1] / "migrate" / "scripts" / "before"
# Two simulated devices for those that start processes; horovod's has to fail, and say why.
COMMANDS = {
    "imagenet_spawn": ("imagenet_spawn.py --multiprocessing-distributed --dist-url tcp://127.0.0.1:29517", 2),
    "accelerator_half": ("accelerator_half.py", 1),
    "cifar_flat": ("cifar_flat.py", 1),
    "cifar100_gpu_flag": ("cifar100_gpu_flag.py -gpu", 1),
    "mobilenet_dali_switch": ("mobilenet_dali_switch.py", 1),
    "apex_nvtx_prefetcher": ("apex_nvtx_prefetcher.py", 1),
    "apex_amp_distributed": ("apex_amp_distributed.py --local_rank 0 --clip", 1),
    "metric_logger": ("metric_logger.py --amp", 1),
    "gpt_globals": ("gpt_globals.py", 1),
    "select_device": ("select_device.py", 1),
    "backend_table": ("backend_table.py --amp", 1),
}


def simulator_is_there() -> bool:
    done = subprocess.run([sys.executable, "-m", "unisono", "simulate", "--help"], capture_output=True, check=False)
    return done.returncode == 0


def test_the_last_place_of_the_traceback_is_named() -> None:
    lines = [
        "Traceback (most recent call last):\n",
        '  File "/tmp/copy/train.py", line 12, in main\n',
        '  File "/usr/lib/python3/site-packages/torch/cuda/__init__.py", line 3, in _lazy_init\n',
        "AssertionError: Torch not compiled with CUDA enabled\n",
    ]
    assert [(t.place, t.what) for t in read_touches(lines, FOLDER)] == [("train.py:12", "it calls CUDA")]


def test_a_missing_name_and_a_missing_library_are_named() -> None:
    lines = [
        "AttributeError: module 'torch.npu' has no attribute 'cudart'\n",
        "AttributeError: module 'torch_npu.npu' has no attribute 'nvtx'\n",
        "ModuleNotFoundError: No module named 'horovod'\n",
    ]
    found = [t.what for t in read_touches(lines, FOLDER)]
    names = ["torch.npu has no such name (cudart)", "torch.npu has no such name (nvtx)"]
    assert found == [*names, "a library that is CUDA code (horovod)"]


def test_the_program_s_own_words_about_cuda_are_no_touch() -> None:
    assert read_touches(["using cuda over nccl\n", "peak cuda memory 3\n"], FOLDER) == []


@pytest.mark.sim
@pytest.mark.parametrize(
    ("name", "target"),
    [*((name, "npu") for name in sorted(COMMANDS)), ("gpt_globals", "portable"), ("backend_table", "portable")],
)
def test_the_migrated_script_trains_on_simulated_npus(name: str, target: str) -> None:
    if not simulator_is_there():
        pytest.skip("the simulated NPU is not part of this checkout")
    command, devices = COMMANDS[name]
    options = ["--to", target, "--try", command, "--devices", str(devices)]
    arguments = [sys.executable, "-m", "unisono", "migrate", *options, str(SCRIPTS / f"{name}.py")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert "nothing touched CUDA" in done.stdout


@pytest.mark.sim
def test_what_cannot_be_migrated_is_shown_by_the_trial() -> None:
    if not simulator_is_there():
        pytest.skip("the simulated NPU is not part of this checkout")
    script = SCRIPTS / "horovod_distributed.py"
    command = [sys.executable, "-m", "unisono", "migrate", "--try", script.name, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 1
    assert "a library that is CUDA code (horovod)" in done.stdout
