"""Faults planted in simulated NPUs: explain names the planted cause and the rank first, from the job's output alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unisono.doctor.explain import explain_text
from unisono.simulator.build import ensure_built

pytestmark = [pytest.mark.sim, pytest.mark.slow, pytest.mark.timeout(300)]

SIMULATE = [sys.executable, "-m", "unisono", "simulate"]
PROGRAM = Path(__file__).resolve().parents[1] / "sim" / "programs" / "faulty.py"


@pytest.fixture(scope="module", autouse=True)
def extension() -> None:
    """Built before any job's time limit runs."""
    ensure_built()


@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        ("oom", {"X101"}),
        ("link", {"507013", "EI0013"}),
        ("ecc", {"X152"}),
        ("hang", {"X134"}),
        ("exit", {"X134"}),
    ],
)
def test_the_planted_fault_is_named_first_and_its_rank(kind: str, codes: set[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [*SIMULATE, "--devices", "2", "--fault", f"rank=1,step=2,kind={kind}", "--", "python", str(PROGRAM)],
        cwd=tmp_path,
        env={**os.environ, "HCCL_EXEC_TIMEOUT": "5", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode != 0
    found = explain_text(done.stdout)
    assert found.code in codes, done.stdout
    assert found.first_rank == 1
    assert all(item.ranks == (0,) for item in found.collateral), found.collateral
