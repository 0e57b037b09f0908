"""Time that counts: training alone, with the device idle at both ends, pauses and warm-up apart."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class TrainingClock:
    """Seconds of training, without evaluation, saving or the first steps.

    Args:
        synchronize: waits until the device is idle; kernels run behind the host.
        timing_warmup_steps: first steps that are timed apart (compilation, allocation, caches).
    """

    def __init__(self, synchronize: Callable[[], None], timing_warmup_steps: int = 5) -> None:
        self._synchronize = synchronize
        self._warmup_left = timing_warmup_steps
        self.on_warm: Callable[[], None] = lambda: None
        """Called once the first steps are over."""
        self._resumed: float | None = None
        self._first_step_at: float | None = None
        self.created = time.perf_counter()
        self.training_s = 0.0
        self.timed_steps = 0
        self.step_times_s: list[float] = []
        """Mean seconds a step of each recorded stretch, for p50 and p90."""
        self.phase_s: dict[str, float] = defaultdict(float)
        """Seconds of what is not training: evaluate, save."""
        self._stretch_steps = 0
        self._stretch_started = 0.0
        self.first_step_s: float | None = None
        """From the clock's creation to the end of the first step."""

    def step_done(self) -> None:
        """One optimizer step is over (on the host; the device may still run)."""
        if self.first_step_s is None:
            self._synchronize()
            self.first_step_s = time.perf_counter() - self.created
        if self._warmup_left > 0:
            self._warmup_left -= 1
            if self._warmup_left == 0:
                self._restart()
                self.on_warm()
            return
        self._stretch_steps += 1

    def lap(self) -> float | None:
        """Close the stretch since the last lap; seconds a step in it, or None while warming up or without steps."""
        if self._warmup_left > 0 or self._stretch_steps == 0:
            return None
        self._synchronize()
        now = time.perf_counter()
        elapsed = now - self._stretch_started
        self.training_s += elapsed
        self.timed_steps += self._stretch_steps
        a_step = elapsed / self._stretch_steps
        self.step_times_s.append(a_step)
        self._stretch_steps, self._stretch_started = 0, now
        return a_step

    @contextmanager
    def paused(self, phase: str) -> Iterator[None]:
        """Time inside belongs to `phase`, not to training."""
        self.lap()
        started = time.perf_counter()
        try:
            yield
        finally:
            self.phase_s[phase] += time.perf_counter() - started
            self._restart()

    def _restart(self) -> None:
        self._synchronize()
        self._stretch_steps, self._stretch_started = 0, time.perf_counter()


def percentile(values: list[float], share: float) -> float | None:
    """The value below which `share` (0 to 1) of `values` lie, nearest rank; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
