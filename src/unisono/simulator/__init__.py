"""Simulated NPUs: code for torch_npu runs on a CPU, and computes exactly what the CPU computes.

`environment` gives the variables that make child processes see simulated NPUs; `activate` turns them on in this process.
The stand-in for torch_npu itself lies in `stand_in`, a folder for PYTHONPATH.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from unisono.simulator.build import ensure_built
from unisono.simulator.real import STAND_IN, refuse_beside_real_npus
from unisono.simulator.settings import SimulatorSettings, make_settings, settings_from

__all__ = ["SimulatorSettings", "activate", "active_settings", "environment"]


def environment(
    devices: int = 8, *, chip: str | None = None, memory: str | int | None = None, faults: Sequence[str] = ()
) -> dict[str, str]:
    """Variables for a child process: PYTHONPATH with the stand-in first, and what is simulated.

    The child, and its children, then `import torch_npu` as on an Ascend server.

    Args:
        devices: NPUs of the server, 1 to 64.
        chip: 910A, 910B (default) or 910C.
        memory: of each device, "32GiB" or bytes; default: the chip's own.
        faults: texts such as "rank=3,step=20,kind=hang".

    Raises:
        UserError: S101 real NPUs work here, S103 to S106 something is out of range, S110 to S114 the extension cannot be
            built.
    """
    settings = make_settings(devices, chip, memory, faults)
    refuse_beside_real_npus()
    ensure_built()  # here, where a failure is told in four lines, and not in eight ranks at once
    path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry and entry != str(STAND_IN)]
    return {
        **settings.to_environment(),
        "PYTHONPATH": os.pathsep.join([str(STAND_IN), *path]),
    }


def activate(
    devices: int = 8, *, chip: str | None = None, memory: str | int | None = None, faults: Sequence[str] = ()
) -> SimulatorSettings:
    """Make this process, and its children, see simulated NPUs. Once per process; call before anything touches an NPU.

    What a parent process has set up (`unisono simulate`, `environment`) stays as it is.

    Raises:
        UserError: S101 real NPUs work here, S102 another backend has taken torch's one slot, S103 to S106 something is out
            of range, S110 to S114 the extension cannot be built.
    """
    active = active_settings()
    if active is not None:
        return active
    if settings_from(os.environ) is None:
        os.environ.update(environment(devices, chip=chip, memory=memory, faults=faults))
    else:
        refuse_beside_real_npus()
    if str(STAND_IN) not in sys.path:
        sys.path.insert(0, str(STAND_IN))
    importlib.import_module("torch_npu")
    settings = active_settings()
    assert settings is not None
    return settings


def active_settings() -> SimulatorSettings | None:
    """What this process simulates; None when it does not."""
    module = sys.modules.get("torch_npu")
    settings = getattr(module, "simulator_settings", None)
    return settings if isinstance(settings, SimulatorSettings) else None
