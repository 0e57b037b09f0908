"""Simulated jobs of several ranks: collectives, refusals, faults, scripts as they are published."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.shared import shared_dir

pytestmark = [pytest.mark.sim, pytest.mark.slow, pytest.mark.timeout(300)]


def test_every_collective_ddp_and_synchronised_batch_norm_agree_with_gloo(simulate) -> None:
    done = simulate("--devices", "6", "--launch", "once", program="torchrun.py", arguments=("3", program("ranks.py")))
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("all checks passed") == 3


def program(name: str) -> str:
    """The path of a program beside these tests."""
    return str(Path(__file__).parent / "programs" / name)


@pytest.mark.parametrize("devices", [2, 8])
def test_the_tutorials_script_runs_as_published_on_2_and_8_devices(simulate, fashion_mnist: Path, devices: int) -> None:
    shared = shared_dir()
    script = shared / "cases" / "tutorial_ddp.py" if shared else None
    done = simulate("--devices", str(devices), program=script if script and script.is_file() else "tutorial.py")
    assert done.returncode == 0, done.stdout
    for rank in range(devices):
        assert re.search(rf"^rank{rank}: loss: \d\.\d+ ", done.stdout, re.MULTILINE), done.stdout


def test_after_the_tutorials_script_all_ranks_hold_equal_parameters(simulate, fashion_mnist: Path) -> None:
    done = simulate(
        "--devices", "2", "--launch", "each", program="same_parameters.py", arguments=(program("tutorial.py"),)
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("equal parameters on all ranks") == 2


def test_a_script_for_gpus_runs_by_one_import_and_its_file_loads_without_the_simulator(simulate, tmp_path: Path) -> None:
    saved = tmp_path / "saved.pt"  # a path that says "cuda" would be rewritten, as by the real import
    done = simulate("--devices", "2", program="cuda_script.py", arguments=(str(saved),))
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("moved Ascend") == 2
    load = (
        "import sys, torch; state = torch.load(sys.argv[1], map_location='cpu', weights_only=True); "
        "assert state['model']['weight'].device.type == 'cpu'; assert 'torch_npu' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", load, str(saved)], check=True)


def test_two_ranks_on_one_npu_are_refused(simulate) -> None:
    done = simulate("--devices", "2", program="same_device.py", arguments=("0,0",))
    assert done.returncode != 0
    assert "EI0014" in done.stdout
    assert "set_device(local_rank)" in done.stdout


def test_a_910a_refuses_two_cards_of_different_rings(simulate) -> None:
    done = simulate(
        "--devices", "8", "--chip", "910A", "--launch", "once",
        program="torchrun.py", arguments=("2", program("same_device.py"), "3,4"),
    )  # fmt: skip
    assert done.returncode != 0
    assert "EI0004" in done.stdout
    assert "two rings" in done.stdout


def test_a_hanging_rank_times_out_on_the_others_as_hccl_says_it(simulate) -> None:
    done = simulate(
        "--devices", "2", "--fault", "rank=1,step=2,kind=hang", program="faulty.py", env={"HCCL_EXEC_TIMEOUT": "5"}
    )
    assert done.returncode != 0
    assert "rank 1, after 2 steps stops here" in done.stdout
    assert "rank0: step 1 done" in done.stdout
    assert "rank0: step 2 done" not in done.stdout
    assert re.search(r"rank0:.*507048", done.stdout), done.stdout
    assert re.search(r"rank0:.*EI0002", done.stdout)


def test_a_rank_that_exits_is_named_as_the_first_to_fail(simulate) -> None:
    done = simulate("--devices", "2", "--fault", "rank=1,step=2,kind=exit", program="faulty.py")
    assert "rank 1, after 2 steps is gone" in done.stdout
    assert "rank 1 failed first, with exit code 17" in done.stdout
    assert done.returncode == 17
