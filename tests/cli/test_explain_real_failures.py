"""Real failures of torch's gloo ranks under torch's launcher, on this machine: the planted cause is named first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unisono.doctor.explain import Explanation, explain_folder, explain_path

pytestmark = [pytest.mark.dist, pytest.mark.faults, pytest.mark.timeout(110)]

JOB = """
import datetime, os, signal, sys, time
import torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=4))
total = torch.ones(4)
for step in range(5):
    dist.all_reduce(total)
    print(f"step {step}", flush=True)
    if step == 2 and dist.get_rank() == 1:
        if sys.argv[1] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if sys.argv[1] == "raise":
            raise KeyError("label 11 is not in the map")
        while True:
            signal.pause()
"""

STORE = """
import datetime, traceback
import torch.distributed as dist
held = dist.TCPStore("127.0.0.1", 0, 1, True)
for name, arguments in (
    ("port.log", dict(port=held.port, world_size=1, is_master=True)),
    ("store.log", dict(port=0, world_size=2, is_master=True, timeout=datetime.timedelta(seconds=1))),
):
    try:
        dist.TCPStore("127.0.0.1", **arguments)
    except Exception:
        with open(name, "w") as file:
            traceback.print_exc(file=file)
"""


def run_job(folder: Path, kind: str) -> Explanation:
    (folder / "job.py").write_text(JOB, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3"]
    with open(folder / "launcher.log", "wb") as log:
        done = subprocess.run(
            [*command, "--log-dir", str(folder / "logs"), "--redirects", "3", "job.py", kind],
            cwd=folder,
            stdout=log,
            stderr=log,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            timeout=100,
            check=False,
        )
    assert done.returncode != 0
    return explain_folder(folder)


def test_a_rank_that_was_killed_is_named_and_the_others_closed_connections_are_folded(tmp_path: Path) -> None:
    found = run_job(tmp_path, "kill")
    assert (found.code, found.first_rank) == ("X131", 1)
    assert {0, 2} >= {rank for item in found.collateral for rank in item.ranks} > set()


def test_a_rank_that_raises_is_named_with_its_exception_and_its_line(tmp_path: Path) -> None:
    found = run_job(tmp_path, "raise")
    assert (found.code, found.first_rank) == ("X141", 1)
    assert "label 11 is not in the map" in found.evidence[0].text
    assert "job.py" in found.evidence[0].frame


def test_a_rank_that_hangs_is_named_by_the_time_outs_of_the_others(tmp_path: Path) -> None:
    found = run_job(tmp_path, "hang")
    assert (found.code, found.first_rank) == ("X138", 1)
    assert found.evidence[0].text == "last line: step 2"


def test_a_port_in_use_and_a_store_that_waits_in_vain_are_told_apart(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", STORE], cwd=tmp_path, check=True, timeout=100, capture_output=True)
    taken = explain_path(tmp_path / "port.log")
    assert (taken.code, taken.phase) == ("X105", "start")
    assert explain_path(tmp_path / "store.log").code == "X115"
