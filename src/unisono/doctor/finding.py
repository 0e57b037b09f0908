"""The outcome of one check: a code, a status, the evidence and one remedy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ok", "warn", "fail", "skip", "unknown"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    code: str
    status: Status
    title: str
    """What was looked at, and how it stands, in a few words."""
    evidence: str = ""
    """What was read: the line, the number, the path."""
    remedy: str = ""
    """One thing to do; empty when there is nothing to do."""
    command: str = ""
    """The remedy as a command, where it is one; printed by --fix, never run."""
    seconds: float = 0.0
    """How long the check took; set by the runner."""

    def to_plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def ok(code: str, title: str, evidence: str = "") -> Finding:
    """All is well."""
    return Finding(code, "ok", title, evidence)


def skip(code: str, title: str, why: str = "") -> Finding:
    """Not looked at, because there is nothing to look at."""
    return Finding(code, "skip", title, why)


def unknown(code: str, title: str, evidence: str = "", remedy: str = "") -> Finding:
    """Looked at, and neither good nor bad can be said."""
    return Finding(code, "unknown", title, evidence, remedy)


def warn(code: str, title: str, evidence: str, remedy: str, command: str = "") -> Finding:
    """It will run, but worse than it could, or may fail later."""
    return Finding(code, "warn", title, evidence, remedy, command)


def fail(code: str, title: str, evidence: str, remedy: str, command: str = "") -> Finding:
    """It will not run."""
    return Finding(code, "fail", title, evidence, remedy, command)
