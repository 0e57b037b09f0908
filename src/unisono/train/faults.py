"""Faults on purpose: at a rank, step and phase, so that recovery can be tried by anyone."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from unisono.errors import UserError
from unisono.job.control import PHASES

log = logging.getLogger(__name__)


class InjectedFaultError(RuntimeError):
    """A rank raised because a FaultPlan said so."""


def _raise() -> None:
    raise InjectedFaultError("injected: this rank raises")


def _hang() -> None:
    while True:
        time.sleep(60)


KINDS: dict[str, Callable[[], object]] = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "raise": _raise,
    "hang": _hang,
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "slow": lambda: time.sleep(3),
    "exit": lambda: os._exit(17),
    "sigterm": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "sigint": lambda: os.kill(os.getpid(), signal.SIGINT),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One planned fault. `attempt` is the life of the job it belongs to (0 the first); None means every life."""

    kind: str
    rank: int | None
    step: int
    phase: str
    attempt: int | None = 0
    device: int | None = None
    """A device instead of a rank: the fault follows it into every life, as a broken card does."""


def parse_fault(text: str) -> Fault:
    """Read "rank=1,step=7,phase=backward,kind=kill"; optional attempt=N, or device=N for a broken card.

    Raises:
        UserError: T201 another form, an unknown key, kind or phase.
    """
    known = {"rank", "step", "phase", "kind", "attempt", "device"}
    pairs = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    unknown = set(pairs) - known
    try:
        if unknown or len(pairs) != len(text.split(",")):
            raise ValueError(f"keys are {', '.join(sorted(known))}, each once, as key=value")
        if pairs.get("kind") not in KINDS:
            raise ValueError(f"kind is one of {', '.join(KINDS)}")
        if pairs.get("phase", "forward") not in PHASES:
            raise ValueError(f"phase is one of {', '.join(PHASES)}")
        device = int(pairs["device"]) if "device" in pairs else None
        return Fault(
            kind=pairs["kind"],
            rank=int(pairs["rank"]) if "rank" in pairs else (0 if device is None else None),
            step=int(pairs.get("step", 0)),
            phase=pairs.get("phase", "forward"),
            attempt=int(pairs["attempt"]) if "attempt" in pairs else (0 if device is None else None),
            device=device,
        )
    except ValueError as error:
        raise UserError(
            "T201",
            f"cannot read --fault {text!r}",
            str(error),
            "write for example --fault rank=1,step=7,phase=backward,kind=kill",
        ) from None


@dataclass(slots=True)
class FaultPlan:
    """The faults of one process: each strikes once, when its step and phase are reached."""

    faults: list[Fault]
    rank: int
    device: int
    attempt: int

    def strike(self, step: int, phase: str) -> None:
        """Do what is planned for this moment, if anything."""
        for fault in self.faults:
            here = fault.device == self.device if fault.device is not None else fault.rank == self.rank
            if here and fault.phase == phase and step >= fault.step and fault.attempt in (None, self.attempt):
                self.faults.remove(fault)
                log.warning("injected: %s in %s of step %d", fault.kind, phase, step)
                KINDS[fault.kind]()
                return
