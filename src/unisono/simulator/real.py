"""Is there a real torch_npu with real NPUs here? A simulator beside it would only mislead."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from unisono.errors import UserError

STAND_IN = Path(__file__).resolve().parent / "stand_in"

_COUNT_REAL_NPUS = "import torch, torch_npu; print('npus', torch_npu.npu.device_count())"
_PROBE_TIMEOUT_S = 120


def refuse_beside_real_npus() -> None:
    """Raise when a torch_npu other than the stand-in works here.

    A torch_npu that is installed but finds no NPU, or does not import for want of CANN, is no hindrance.

    Raises:
        UserError: S101 real NPUs are usable.
    """
    if not _real_torch_npu_installed():
        return
    count = _real_npus()
    if count:
        raise UserError(
            "S101",
            "the simulated NPU is not started beside real ones",
            f"torch_npu works here and sees {count} NPU{'s' if count > 1 else ''}",
            "run without --simulate, or in an environment without torch_npu",
        )


def _real_torch_npu_installed() -> bool:
    loaded = sys.modules.get("torch_npu")
    if loaded is not None and not getattr(loaded, "is_simulated", False):
        return True
    with_stand_in = list(sys.path)
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != STAND_IN]
    try:
        if loaded is not None:
            # find_spec answers for a loaded module from the module itself.
            return any((Path(entry or ".") / "torch_npu" / "__init__.py").is_file() for entry in sys.path)
        return importlib.util.find_spec("torch_npu") is not None
    finally:
        sys.path[:] = with_stand_in


def _real_npus() -> int:
    """NPUs that the real torch_npu sees, asked in a process of its own: it may crash where CANN is half installed."""
    entries = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    clean = [entry for entry in entries if Path(entry).resolve() != STAND_IN]
    try:
        done = subprocess.run(
            [sys.executable, "-c", _COUNT_REAL_NPUS],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(clean)},
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 0
    words = done.stdout.split()
    return int(words[-1]) if done.returncode == 0 and len(words) >= 2 and words[-2] == "npus" and words[-1].isdigit() else 0
