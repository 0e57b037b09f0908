"""Time lost to failures: from a rank's last sign of life until the job is back at the step that failed."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

_BACK = "back"


@dataclass(frozen=True, slots=True)
class Outage:
    """What restarts have cost so far. Handed from the launcher to ranks, and back through the control folder."""

    restarts: int = 0
    seconds_lost: float = 0.0
    """Of outages that are over."""
    since: float | None = None
    """When the present outage began, on this machine's monotonic clock; None when there is none."""
    step: int = 0
    """Where the job was then; the outage is over once it is there again."""

    def failed(self, at: float, step: int) -> Outage:
        """After one more failure. A failure on the way back prolongs the outage."""
        if self.since is None:
            return replace(self, restarts=self.restarts + 1, since=at, step=step)
        return replace(self, restarts=self.restarts + 1, step=max(self.step, step))

    def over(self) -> Outage:
        """As of now, the job is where it was."""
        if self.since is None:
            return self
        lost = self.seconds_lost + max(0.0, time.monotonic() - self.since)
        return replace(self, seconds_lost=lost, since=None, step=0)

    def encode(self) -> str:
        """For an environment variable."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> Outage:
        """The opposite of `encode`; an empty text is no outage."""
        return cls(**json.loads(text)) if text else cls()

    def tell(self, folder: Path) -> None:
        """Let the launcher know that the outage is over."""
        temporary = folder / f"{_BACK}.tmp"
        temporary.write_text(self.encode(), encoding="utf-8")
        temporary.rename(folder / _BACK)

    def heard(self, folder: Path) -> Outage:
        """What a rank told of this outage, or itself when none did yet."""
        path = folder / _BACK
        return self.decode(path.read_text(encoding="utf-8")) if path.is_file() else self
