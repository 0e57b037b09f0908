"""The laws' own tests, run again on simulated NPUs: the same files, in a process that `unisono simulate` starts.

Law 6 is tests/sim/inside; that the digests are also the CPU's: tests/sim/test_training.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.sim, pytest.mark.slow, pytest.mark.timeout(300)]
TESTS = Path(__file__).resolve().parents[1]

# The law, and tests that must be among those that passed.
LAWS = {
    "1": ("test_the_number_of_ranks_changes_no_byte_and_no_count", 3),
    "2": ("test_stopping_anywhere_and_going_on_with_other_devices_changes_no_byte", 4),
    "3": ("test_a_rank_that_dies_costs_time_and_no_byte", 2),
    "4": ("test_law_4_", 1),
    "5": ("test_law_5_", 2),
    "7": ("test_a_checkpoint_holds_only_tensors_and_plain_types_and_its_model_loads_into_a_plain_one", 1),
    "8": ("test_law_8_", 1),
}
# Of law 1 worlds of 1, 2, 3, 4, 7 and 8 ranks; of law 3 two moments.
SELECTION = "perceptron or lamb or stopping_anywhere or law_4 or law_5 or law_8 or plain_types or (rank_that_dies and (backward or exit))"
FILES = ("dist/test_law1_worlds.py", "dist/test_law2_resume.py", "dist/test_training_laws.py", "faults/test_recovery.py")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of those tests in a process that simulates 8 NPUs."""
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "simulate", "--devices", "8", "--launch", "once", "--",
         "python", "-m", "pytest", *(str(TESTS / file) for file in FILES), "-k", SELECTION, "-rA",
         "--basetemp", str(tmp_path_factory.mktemp("laws") / "inner")],
        cwd=TESTS.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("law", LAWS)
def test_the_laws_own_tests_pass_on_simulated_npus(law: str, report: str) -> None:
    name, count = LAWS[law]
    passed = [line for line in report.splitlines() if line.startswith("PASSED") and f"::{name}" in line]
    assert len(passed) == count, report
