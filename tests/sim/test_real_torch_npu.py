"""The table of names that the stand-in is tested against, tested against the real torch_npu.

The real package imports without CANN where small libraries stand in for CANN's own; its devices fail, and its names and
signatures are there. UNISONO_REAL_TORCH_NPU names the Python of such an environment (torch_npu 2.13.0), LD_LIBRARY_PATH
the folder of those libraries.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import unisono.simulator

pytestmark = [pytest.mark.sim, pytest.mark.slow, pytest.mark.timeout(120)]
PYTHON = os.environ.get("UNISONO_REAL_TORCH_NPU", "")
TABLE = Path(unisono.simulator.__file__).parent / "names.tsv"


@pytest.mark.skipif(not PYTHON, reason="UNISONO_REAL_TORCH_NPU does not name a Python that has the real torch_npu")
def test_every_name_of_the_table_is_the_real_ones_with_its_signature() -> None:
    program = Path(__file__).parent / "signatures.py"
    done = subprocess.run([PYTHON, str(program), str(TABLE)], stdout=subprocess.PIPE, text=True, check=True)
    real = json.loads(done.stdout.splitlines()[-1])
    rows = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]]
    assert sorted({name for name, _, _ in rows} - set(real)) == []
    compared = 0
    for name, kind, signature in rows:
        if kind in ("function", "class", "method") and signature.startswith("(") and real[name] is not None:
            compared += 1
            for parameter in real[name]:
                assert parameter.strip("*=") in signature, f"{name}: {parameter} is not in {signature}"
    assert compared > 200
