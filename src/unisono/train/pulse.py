"""Each rank says what it is doing, at every phase of every step: to the launcher's watch, and to planned faults."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable

from unisono.job.control import Heartbeat
from unisono.job.outage import Outage
from unisono.train.faults import FaultPlan


class Pulse:
    """One call a phase; costs a store into shared memory and a look at the clock."""

    def __init__(
        self,
        heartbeat: Heartbeat | None,
        faults: FaultPlan | None,
        outage: Outage | None = None,
        on_back: Callable[[Outage], None] | None = None,
    ) -> None:
        self._heartbeat = heartbeat
        self._faults = faults if faults and faults.faults else None
        self.outage = outage or Outage()
        """What restarts have cost this run so far."""
        self._on_back = on_back
        self.step = 0
        self.phase = "start"
        self._since = time.perf_counter()
        self.phase_s: dict[str, float] = defaultdict(float)
        """Host seconds in each phase since `restart_clock`."""

    def restart_clock(self) -> None:
        """Forget the times so far: the first steps warm up."""
        self.phase_s.clear()
        self._since = time.perf_counter()

    def at(self, phase: str, step: int) -> None:
        """Begin `phase` of `step`."""
        now = time.perf_counter()
        self.phase_s[self.phase] += now - self._since
        self._since = now
        self.phase, self.step = phase, step
        if self.outage.since is not None and phase != "start" and step >= self.outage.step:
            self.outage = self.outage.over()
            if self._on_back is not None:
                self._on_back(self.outage)
        if self._heartbeat is not None:
            self._heartbeat.beat(step, phase)
        if self._faults is not None:
            self._faults.strike(step, phase)
