"""Each rank says what it is doing, at every phase of every step: to the launcher's watch, and to planned faults."""

from __future__ import annotations

from unisono.job.control import Heartbeat
from unisono.train.faults import FaultPlan


class Pulse:
    """One call a phase; costs a store into shared memory."""

    def __init__(self, heartbeat: Heartbeat | None, faults: FaultPlan | None) -> None:
        self._heartbeat = heartbeat
        self._faults = faults if faults and faults.faults else None
        self.step = 0
        self.phase = "start"

    def at(self, phase: str, step: int) -> None:
        """Begin `phase` of `step`."""
        self.phase, self.step = phase, step
        if self._heartbeat is not None:
            self._heartbeat.beat(step, phase)
        if self._faults is not None:
            self._faults.strike(step, phase)
