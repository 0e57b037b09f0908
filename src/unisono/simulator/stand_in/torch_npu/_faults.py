"""Planned faults: counted in optimizer steps of this process, struck at its next collective or allocation."""

from __future__ import annotations

import os
import time
from typing import Any

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_post_hook

from torch_npu._runtime import extension
from unisono.simulator.fault import SimulatedFault
from unisono.simulator.settings import SimulatorSettings

# As in the extension's `Point` and `Blow`.
_COLLECTIVE, _ALLOCATION = 1, 2
_RAISE, _OUT_OF_MEMORY, _HANG, _EXIT = range(4)
_MEMORY_FAILURE, _LINK_FAILURE = 507054, 507013


def plan(settings: SimulatorSettings) -> None:
    """Watch optimizer steps when there are faults to come; otherwise cost nothing."""
    life = int(os.environ.get("TORCHELASTIC_RESTART_COUNT") or 0) + int(os.environ.get("UNISONO_ATTEMPT") or 0)
    faults = [fault for fault in settings.planned_faults() if fault.attempt in (None, life)]
    if not faults:
        return
    watch = _Watch(faults)
    register_optimizer_step_post_hook(watch.after_step)
    watch.arm()


def current_rank() -> int:
    """This process's rank: the group's, the launcher's, or 0."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank()
    return int(os.environ.get("RANK") or 0)


class _Watch:
    def __init__(self, faults: list[SimulatedFault]) -> None:
        self._waiting = faults
        self._steps = 0
        self._last_end = time.monotonic()
        self._factor = 1.0

    def after_step(self, *_: Any) -> None:
        """Called by torch after each optimizer step."""
        self._steps += 1
        if self._factor > 1:
            time.sleep((time.monotonic() - self._last_end) * (self._factor - 1))
        self._last_end = time.monotonic()
        self.arm()

    def arm(self) -> None:
        """Arm the faults whose moment has come."""
        for fault in list(self._waiting):
            # A script that spawns its ranks itself knows its rank only after init_process_group: step 0 waits for the
            # launcher's word.
            if self._steps >= fault.step and current_rank() == fault.rank:
                self._waiting.remove(fault)
                self._start(fault)

    def _start(self, fault: SimulatedFault) -> None:
        if fault.kind == "slow":
            self._factor = fault.factor
            return
        among_others = dist.is_initialized() and dist.get_world_size() > 1
        early = not dist.is_initialized() and int(os.environ.get("WORLD_SIZE") or 1) > 1
        moment = _COLLECTIVE if among_others or early else _ALLOCATION
        here = f"rank {fault.rank}, after {self._steps} steps"
        if fault.kind == "oom":
            extension.arm_fault(_ALLOCATION, _OUT_OF_MEMORY, _out_of_memory(here))
        elif fault.kind == "ecc":
            extension.arm_fault(_ALLOCATION, _RAISE, _memory_error(here))
        elif fault.kind == "link":
            extension.arm_fault(moment, _RAISE, _link_error(here))
        elif fault.kind == "hang":
            extension.arm_fault(moment, _HANG, f"simulated fault: {here} stops here and does not come back")
        else:
            extension.arm_fault(moment, _EXIT, f"simulated fault: {here} is gone")


def _out_of_memory(here: str) -> str:
    total = extension.memory_counters(-1)
    return (
        f"NPU out of memory. Tried to allocate 2.00 GiB (NPU {extension.current_device()}; "
        f"{total['limit'] / 2**30:.2f} GiB total capacity; {total['allocated'] / 2**30:.2f} GiB already allocated; "
        f"{total['allocated'] / 2**30:.2f} GiB current active; 0 bytes free; {total['reserved'] / 2**30:.2f} GiB reserved in "
        f"total by PyTorch). A fault of the simulated NPU, asked for by --fault ({here})"
    )


def _memory_error(here: str) -> str:
    device = extension.current_device()
    return str(
        extension.driver_error(
            "aclrtSynchronizeStream",
            _MEMORY_FAILURE,
            "HBM MULTI BIT ECC ERROR: the memory of the device holds data that cannot be corrected.",
            f"EL0001: NPU {device} is abnormal. `npu-smi info -t ecc -i {device}` counts it; isolate the card and start "
            f"again without it. ({here})",
        )
    )


def _link_error(here: str) -> str:
    return str(
        extension.driver_error(
            "HcclAllReduce",
            _LINK_FAILURE,
            "DMA hardware execution error.",
            f"EI0013: an error CQE came back while an operator ran: the link to another device is down or flapping. Local: "
            f"device ID {extension.current_device()}. Ask `hccn_tool -i {extension.current_device()} -link_stat -g`. ({here})",
        )
    )
