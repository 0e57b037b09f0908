"""What ranks tell their launcher besides an exit status: heartbeats and failures, as small files in one folder."""

from __future__ import annotations

import json
import mmap
import signal
import struct
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from unisono.errors import UserError

PHASES = ("start", "data", "forward", "backward", "reduce", "update", "evaluate", "save", "end")
"""What a rank may be doing; heartbeats store the position in this tuple."""

ENDED = signal.SIGUSR2
"""Ends ranks when another has failed: they have nothing to save, and wait where they hear no SIGTERM. No rank handles it."""

_BEAT = struct.Struct("<dqq")  # seconds on the machine's monotonic clock, step, phase


class Heartbeat:
    """A rank's sign of life, written without a system call (a store into shared memory)."""

    def __init__(self, folder: Path, rank: int) -> None:
        path = folder / f"beat_{rank}"
        with open(path, "wb") as file:
            file.write(_BEAT.pack(time.monotonic(), 0, 0))
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _BEAT.size)

    def beat(self, step: int, phase: str) -> None:
        """Say that this rank has begun `phase` of `step`."""
        _BEAT.pack_into(self._memory, 0, time.monotonic(), step, PHASES.index(phase))


@dataclass(frozen=True, slots=True)
class Beat:
    """The last sign of life of one rank."""

    rank: int
    seconds_ago: float
    step: int
    phase: str

    @property
    def progress(self) -> tuple[int, int]:
        """Sorts ranks by how far they are."""
        return (self.step, PHASES.index(self.phase))


def read_beats(folder: Path) -> list[Beat]:
    """The heartbeats of all ranks that have started, by rank."""
    now = time.monotonic()
    beats: list[Beat] = []
    for path in folder.glob("beat_*"):
        raw = path.read_bytes()
        if len(raw) == _BEAT.size:
            seconds, step, phase = _BEAT.unpack(raw)
            beats.append(Beat(int(path.name.removeprefix("beat_")), now - seconds, step, PHASES[phase]))
    return sorted(beats, key=lambda beat: beat.rank)


def forget_beats(folder: Path) -> None:
    """Remove what ranks of an ended attempt said, the end of an outage included."""
    for path in (*folder.glob("beat_*"), folder / "back"):
        path.unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """How one rank died."""

    rank: int
    attempt: int = 0
    time: float = 0.0
    """Seconds since 1970, when the rank noticed."""
    step: int = 0
    phase: str = "start"
    exit_code: int | None = None
    signal: str | None = None
    message: str = ""
    traceback: str = ""
    user_error: dict[str, Any] | None = None
    """code, what, why, fix and exit_code when the failure is one the user can act on; then nothing is restarted."""
    collateral: bool = False
    """True when the rank died because another did: its connection was closed."""

    def as_user_error(self) -> UserError | None:
        """The coded error that the rank raised, if it was one."""
        return None if self.user_error is None else UserError(**self.user_error)


# What gloo, NCCL, HCCL and the store say on the ranks that did not fail first.
_COLLATERAL = (
    "connection closed by peer",
    "connection reset by peer",
    "broken pipe",
    "connection refused",
    "remote process exited",
    "timed out waiting",
    "timeout waiting for key",
    "socket timeout",
    "hccl_connect_timeout",
    "ei0006",
    "ei0002",
    "nccl communicator was aborted",
    "recvvalue failed",
    "failed to recv",
    "sendbytes failed",
)


def record_failure(folder: Path, error: BaseException, *, rank: int, attempt: int, step: int, phase: str) -> Failure:
    """Write what this rank died of, for the launcher to read."""
    text = str(error)
    user_error = None
    if isinstance(error, UserError):
        user_error = {
            "code": error.code,
            "what": error.what,
            "why": error.why,
            "fix": error.fix,
            "exit_code": int(error.exit_code),
        }
    failure = Failure(
        rank=rank,
        attempt=attempt,
        time=time.time(),
        step=step,
        phase=phase,
        message=f"{type(error).__name__}: {text}",
        traceback="".join(traceback.format_exception(error)),
        user_error=user_error,
        collateral=any(sign in text.lower() for sign in _COLLATERAL),
    )
    temporary = folder / f"failure_{attempt}_{rank}.tmp"
    temporary.write_text(json.dumps(asdict(failure)), encoding="utf-8")
    temporary.rename(temporary.with_suffix(".json"))
    return failure


def read_failures(folder: Path, attempt: int) -> list[Failure]:
    """The failures recorded in one attempt, first first."""
    found = [
        Failure(**json.loads(path.read_text(encoding="utf-8"))) for path in folder.glob(f"failure_{attempt}_*.json")
    ]
    return sorted(found, key=lambda failure: failure.time)


def first_failure(failures: list[Failure]) -> Failure | None:
    """The failure that the others followed from: a rank killed by a signal or raising by itself goes before collateral."""
    own = [failure for failure in failures if not failure.collateral]
    ordered = sorted(own or failures, key=lambda failure: failure.time)
    return ordered[0] if ordered else None


class StopFlag:
    """Set by SIGTERM, SIGINT or SIGHUP; ranks look at it between steps and agree. Later signals change nothing."""

    def __init__(self) -> None:
        self.signal: int | None = None

    @property
    def requested(self) -> bool:
        """True once a signal asked this process to stop."""
        return self.signal is not None

    def listen(self) -> None:
        """Take over the signals. Call before anything slow, so that no signal finds the default handler."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal = self.signal or number
