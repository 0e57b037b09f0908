"""Runs tests/sim/inside in processes that simulate NPUs: pytest's own process stays without them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unisono.simulator import environment

pytestmark = [pytest.mark.sim, pytest.mark.slow, pytest.mark.timeout(600)]
INSIDE = Path(__file__).parent / "inside"


@pytest.mark.parametrize(
    ("chip", "selection"),
    [("910B", ""), ("910A", "refus or 910a or saturates or memory or chip or device"), ("910C", "chip or bfloat16 or overflow")],
)
def test_the_laws_of_one_process_hold_on_every_chip(chip: str, selection: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", str(INSIDE), "-x", "-p", "no:xdist", "-o", "addopts=--import-mode=importlib -q",
         *(["-k", selection] if selection else [])],
        env={**os.environ, **environment(devices=4, chip=chip, memory="1GiB"), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
