"""Two result files of one benchmark: better, worse, or within the noise."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unisono.errors import UserError


@dataclass(frozen=True, slots=True)
class Verdict:
    """One figure in both files."""

    name: str
    before: float
    after: float
    noise: float
    """Half the sum of both spreads, as a share."""

    @property
    def change(self) -> float:
        """(after - before) / before."""
        return self.after / self.before - 1

    @property
    def word(self) -> str:
        """faster, slower, or within the noise."""
        if abs(self.change) <= self.noise:
            return "within the noise"
        return "faster" if self.change > 0 else "slower"


def compare_files(before: Path, after: Path) -> list[Verdict]:
    """Compare the series that both files hold.

    Raises:
        UserError: B105 a file that is no result, B106 no series in common.
    """
    old, new = (_series(path) for path in (before, after))
    common = [key for key in old if key in new]
    if not common:
        raise UserError(
            "B106",
            f"{before.name} and {after.name} have no case in common",
            "a case is recipe, devices, replicas, threads, precision, batch and data",
            "measure the same cases",
        )
    return [
        Verdict(
            key,
            old[key]["images_per_second"],
            new[key]["images_per_second"],
            max(0.01, (old[key]["spread"] + new[key]["spread"]) / 2),
        )
        for key in common
    ]


def _series(path: Path) -> dict[str, dict[str, Any]]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return {_name(series["case"]): series for series in document["series"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            "B105",
            f"{path} is no result of `unisono bench`",
            f"{type(error).__name__}: {error}",
            "give the file that --output wrote",
        ) from None


def _name(case: dict[str, Any]) -> str:
    parts = [case["recipe"], f"{case['devices']} devices", f"{case['replicas']} replicas", f"{case['threads']} threads"]
    parts += [
        str(case[key]) for key in ("precision", "per_replica_batch_size", "reduction") if case.get(key) is not None
    ]
    return ", ".join(parts)
