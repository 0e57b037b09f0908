"""When a command gets a process for each device, and how the processes' end is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from unisono.errors import UserError
from unisono.simulator.launch import choose_launch, run_simulated, script_of, wants_ranks

READS_RANK = "import os\nrank = int(os.environ['LOCAL_RANK'])\n"
JOINS = "import torch.distributed as dist\ndist.init_process_group('hccl')\n"
SPAWNS = "import torch.multiprocessing as mp\n" + JOINS + "mp.spawn(main, nprocs=8)\n"
MULTIPROCESSING = JOINS + "from multiprocessing import Process\nProcess(target=main).start()\n"
PLAIN = "import torch\nx = torch.ones(1).npu()\ntree.spawn()\n"


@pytest.mark.parametrize(
    ("source", "wanted"),
    [(READS_RANK, True), (JOINS, True), (SPAWNS, False), (MULTIPROCESSING, False), (PLAIN, False), ("def (", False)],
)
def test_a_script_wants_ranks_when_it_expects_a_launcher_and_spawns_nothing(source: str, wanted: bool) -> None:
    assert wants_ranks(source) is wanted


def test_auto_launches_for_each_device_only_a_script_that_wants_ranks(tmp_path: Path) -> None:
    script, plain = tmp_path / "ranks.py", tmp_path / "plain.py"
    script.write_text(READS_RANK)
    plain.write_text(PLAIN)
    assert choose_launch("auto", ["python", str(script), "--lr", "1"], {}) == "each"
    assert choose_launch("auto", ["python", "-u", str(script)], {}) == "each"
    assert choose_launch("auto", ["python", str(plain)], {}) == "once"
    assert choose_launch("auto", ["torchrun", "--nproc-per-node", "8", str(script)], {}) == "once"
    assert choose_launch("auto", ["python", "-m", "package"], {}) == "once"
    assert choose_launch("auto", ["python", str(script)], {"RANK": "0"}) == "once"
    assert choose_launch("once", ["python", str(script)], {}) == "once"
    assert choose_launch("each", ["anything"], {}) == "each"
    with pytest.raises(UserError) as refusal:
        choose_launch("twice", ["python"], {})
    assert refusal.value.code == "S108"


def test_the_script_is_found_behind_pythons_own_options(tmp_path: Path) -> None:
    script = tmp_path / "a.py"
    script.touch()
    assert script_of(["python3", "-W", "ignore", "-u", str(script), "-m"]) == script
    assert script_of(["python", "-c", "pass"]) is None
    assert script_of(["bash", str(script)]) is None


@pytest.mark.parametrize(("command", "code"), [([], "S107"), (["no-such-program-here"], "S107"), (["python", "gone.py"], "S109")])
def test_a_command_that_cannot_run_is_refused(command: list[str], code: str) -> None:
    with pytest.raises(UserError) as refusal:
        run_simulated(command, 2, "each", {}, lambda line, is_error: None)
    assert refusal.value.code == code


def test_each_rank_has_its_variables_and_its_lines_are_told_apart() -> None:
    lines: list[str] = []
    text = "import os; print(os.environ['RANK'], os.environ['LOCAL_RANK'], os.environ['WORLD_SIZE'], os.environ['SIM'])"
    result = run_simulated([sys.executable, "-c", text], 3, "each", {"SIM": "yes"}, lambda line, _: lines.append(line))
    assert (result.exit_code, result.failed_rank) == (0, None)
    assert sorted(lines) == ["rank0: 0 0 3 yes", "rank1: 1 1 3 yes", "rank2: 2 2 3 yes"]


def test_the_first_failing_rank_is_named_and_the_others_are_ended() -> None:
    text = "import os, sys, threading; sys.exit(5) if os.environ['RANK'] == '1' else threading.Event().wait()"
    result = run_simulated([sys.executable, "-c", text], 2, "each", {}, lambda line, is_error: None)
    assert (result.exit_code, result.failed_rank) == (5, 1)


def test_a_signals_exit_code_is_the_shells() -> None:
    text = "import os; os.kill(os.getpid(), 9)"
    assert run_simulated([sys.executable, "-c", text], 1, "once", {}, lambda line, is_error: None).exit_code == 137
