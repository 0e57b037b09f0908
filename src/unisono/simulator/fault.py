"""Faults of a simulated NPU as text: `rank=3,step=20,kind=hang`. What they do is in the stand-in's `_faults`."""

from __future__ import annotations

from dataclasses import dataclass

from unisono.errors import UserError

KINDS: dict[str, str] = {
    "hang": "the rank stops inside its next collective and never comes back",
    "exit": "the process is gone, without a word to the others",
    "oom": "the next allocation finds no memory",
    "link": "the next collective fails on a broken link",
    "slow": "from then on every step takes the given multiple of its time, as in slow:2.0",
    "ecc": "the device reports a memory error that it could not correct",
}


@dataclass(frozen=True, slots=True)
class SimulatedFault:
    """One planned fault. It strikes once (slow: from then on), in life `attempt` of the job."""

    kind: str
    rank: int
    step: int
    """Optimizer steps that the rank has done before it strikes."""
    factor: float = 1.0
    """Of slow: how many times longer a step takes."""
    attempt: int | None = 0
    """0 is the first life of the job; None means every life."""


def parse_fault(text: str) -> SimulatedFault:
    """Read "rank=3,step=20,kind=slow:2.0"; optional attempt=N or attempt=all.

    Raises:
        UserError: S106 another form, an unknown key or kind.
    """
    try:
        return _parse(text)
    except ValueError as error:
        raise UserError(
            "S106", f"cannot read --fault {text!r}", str(error), "write for example --fault rank=3,step=20,kind=hang"
        ) from None


def _parse(text: str) -> SimulatedFault:
    known = ("rank", "step", "kind", "attempt")
    parts = [part.strip() for part in text.split(",")]
    pairs = dict(part.split("=", 1) for part in parts if "=" in part)
    if len(pairs) != len(parts) or set(pairs) - set(known):
        raise ValueError(f"it is key=value pairs, each key once, of {', '.join(known)}")
    kind, _, factor = pairs.get("kind", "").partition(":")
    if kind not in KINDS:
        raise ValueError(f"kind is one of {', '.join(KINDS)}")
    if bool(factor) != (kind == "slow"):
        raise ValueError("slow takes a factor, as in slow:2.0, and the other kinds take none")
    attempt = pairs.get("attempt", "0")
    fault = SimulatedFault(
        kind=kind,
        rank=_count("rank", pairs.get("rank", "0")),
        step=_count("step", pairs.get("step", "0")),
        factor=float(factor or 1),
        attempt=None if attempt == "all" else _count("attempt", attempt),
    )
    if not 1 <= fault.factor <= 1000:
        raise ValueError(f"a factor from 1 to 1000 is wanted, and this one is {factor}")
    return fault


def _count(key: str, text: str) -> int:
    if not text.isdigit():
        raise ValueError(f"{key} is a whole number, 0 or more, and this one is {text!r}")
    return int(text)
