"""One measured run: what was asked, what it gave, and on what."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from unisono.errors import UserError


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A run to time. Two cases may be compared when all but `devices` and `replicas` agree."""

    recipe: str
    devices: int
    replicas: int
    steps: int
    threads: int
    platform: str = "cpu"
    precision: str | None = None
    per_replica_batch_size: int | None = None
    data_path: str | None = None
    reduction: str | None = None
    settings: tuple[str, ...] = ()

    def comparable(self) -> tuple[object, ...]:
        """What must be equal in a pair."""
        return (
            self.recipe,
            self.steps,
            self.threads,
            self.platform,
            self.precision,
            self.per_replica_batch_size,
            self.data_path,
            self.reduction,
            self.settings,
        )

    def command(self, run_dir: Path) -> list[str]:
        """The command that makes this run."""
        words = [
            "train",
            self.recipe,
            "--devices",
            str(self.devices),
            "--replicas",
            str(self.replicas),
            "--steps",
            str(self.steps),
        ]
        words += [
            "--threads",
            str(self.threads),
            "--platform",
            self.platform,
            "--run-dir",
            str(run_dir),
            "--json",
            "--record-every",
            "1",
            "--max-restarts",
            "0",
        ]
        words += ["--set", "evaluate.every='0 steps'", "--set", "checkpoint.every='0 steps'"]
        for option, value in (
            ("--precision", self.precision),
            ("--batch-size", self.per_replica_batch_size),
            ("--data-path", self.data_path),
            ("--reduction", self.reduction),
        ):
            if value is not None:
                words += [option, str(value)]
        for setting in self.settings:
            words += ["--set", setting]
        return words


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run of a case gave."""

    images_per_second: float
    step_time_ms: float
    first_step_s: float
    total_s: float
    phase_s_by_rank: list[dict[str, float]]
    """Host seconds of each rank in data, forward, backward, reduce (exposed communication) and update."""


@dataclass(slots=True)
class Series:
    """Repeats of one case."""

    case: Case
    runs: list[Measured] = field(default_factory=list)

    @property
    def images_per_second(self) -> float:
        """Median over the repeats."""
        return median(run.images_per_second for run in self.runs)

    @property
    def spread(self) -> float:
        """(greatest - least) / median of images per second."""
        speeds = [run.images_per_second for run in self.runs]
        return (max(speeds) - min(speeds)) / self.images_per_second

    def phase_shares(self) -> list[dict[str, float]]:
        """Each rank's share of its time a phase, mean over the repeats."""
        shares: list[dict[str, float]] = []
        for rank in range(self.case.devices):
            sums: dict[str, float] = {}
            for run in self.runs:
                for phase, seconds in run.phase_s_by_rank[rank].items():
                    sums[phase] = sums.get(phase, 0.0) + seconds
            whole = sum(sums.values()) or 1.0
            shares.append({phase: seconds / whole for phase, seconds in sums.items()})
        return shares

    def straggler(self) -> int | None:
        """The rank that the others wait for: the one that waits least, when another waits twice as long and over 5 %."""
        waits = [share.get("reduce", 0.0) for share in self.phase_shares()]
        if len(waits) < 2 or max(waits) < 0.05 or max(waits) < 2 * min(waits):
            return None
        return waits.index(min(waits))

    def to_plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "case": asdict(self.case),
            "images_per_second": self.images_per_second,
            "spread": self.spread,
            "runs": [asdict(run) for run in self.runs],
            "phase_shares_by_rank": self.phase_shares(),
            "straggler": self.straggler(),
        }


def measure(case: Case) -> Measured:
    """Run a case in processes of its own.

    Raises:
        UserError: B101 the run did not end, with its own words; B102 too few steps to time.
    """
    with tempfile.TemporaryDirectory(prefix="unisono-bench-") as folder:
        command = [sys.executable, "-m", "unisono", *case.command(Path(folder) / "run")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            words = [line for line in done.stderr.splitlines() if line.strip()]
            raise UserError(
                "B101",
                f"a run on {case.devices} devices ended with exit code {done.returncode}",
                " ".join(words[-3:])[:400] or "no output",
                "mend that first: " + " ".join(["unisono", *case.command(Path("RUN"))[:4]]),
            )
        summary = json.loads(done.stdout)
    if not summary["images_per_second"]:
        raise UserError(
            "B102",
            f"{case.steps} steps are too few to time",
            "the first 5 warm up and are not counted",
            "use --steps 15 or more",
        )
    return Measured(
        summary["images_per_second"],
        summary["step_time_ms"],
        summary["first_step_s"],
        summary["total_s"],
        summary["phase_s_by_rank"],
    )


def interleave(cases: list[Case], repeats: int, on_run: Any = None) -> list[Series]:
    """Measure cases in turn, A B C A B C ..., so that a machine that slows down slows all alike."""
    series = [Series(case) for case in cases]
    for repeat in range(repeats):
        for one in series:
            if on_run is not None:
                on_run(one.case, repeat)
            one.runs.append(measure(one.case))
    return series


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    import platform
    from importlib.metadata import version

    name = ""
    try:
        name = next(
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        )
    except (OSError, StopIteration):
        name = platform.machine()
    return {
        "processor": name,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "load_before": round(os.getloadavg()[0], 1),
    }
