"""Where two runs part: the first step, the first tensor, the greatest difference."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from unisono.errors import UserError
from unisono.train.checkpoint import newest_whole
from unisono.train.digest import digest_of
from unisono.train.ground import differences, read_grounds


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The answer for two runs."""

    equal: bool
    first: str
    second: str
    steps: tuple[int, int]
    """Steps of the two checkpoints compared."""
    digests: tuple[str, str]
    first_differing_step: int | None = None
    """The first step at which recorded losses or weights differ; None when the records do not show it."""
    differing: tuple[str, ...] = ()
    """Names of what differs, in order."""
    max_difference: float | None = None
    """Greatest absolute difference of the first differing tensor; None when it has another shape or no number."""
    greatest: tuple[str, float] | None = None
    """The tensor that differs most, and by how much."""
    conditions: tuple[str, ...] = ()
    """Threads, versions and devices that are not the same in both: exactness does not reach across these."""

    def lines(self) -> list[str]:
        """For a person."""
        if self.equal:
            return [
                f"equal: {self.first} and {self.second} hold the same bytes after {self.steps[0]} steps",
                f"digest {self.digests[0]}",
                *(f"equal although these differ: {text}" for text in self.conditions),
            ]
        lines = [
            f"different: {self.first} and {self.second}",
            f"digests {self.digests[0][:16]} and {self.digests[1][:16]}",
        ]
        if self.steps[0] != self.steps[1]:
            lines.append(f"their newest checkpoints are of different steps: {self.steps[0]} and {self.steps[1]}")
        if self.first_differing_step is not None:
            lines.append(f"first step that differs in the records: {self.first_differing_step}")
        if self.differing:
            amount = "" if self.max_difference is None else f", by at most {self.max_difference:.3g}"
            more = f" and {len(self.differing) - 1} more" if len(self.differing) > 1 else ""
            lines.append(f"first that differs: {self.differing[0]}{amount}{more}")
        if self.greatest is not None and self.greatest[0] != self.differing[0]:
            lines.append(f"differs most: {self.greatest[0]}, by {self.greatest[1]:.3g}")
        if self.conditions:
            lines.append(f"warning: exactness does not reach across these: {'; '.join(self.conditions)}")
        return lines


def compare_runs(first: Path, second: Path) -> Comparison:
    """Compare the newest whole checkpoints and the records of two run folders.

    Raises:
        UserError: V101 a folder without a whole checkpoint.
    """
    payloads = [_newest_payload(folder) for folder in (first, second)]
    digests = tuple(digest_of(payload) for payload in payloads)
    a, b = (dict(_leaves(payload, "")) for payload in payloads)
    differing = [
        name
        for name in a.keys() | b.keys()
        if name not in a or name not in b or digest_of(a[name]) != digest_of(b[name])
    ]
    order = {name: position for position, name in enumerate([*a, *b])}
    differing.sort(key=lambda name: (not name.startswith("model."), order[name]))
    amounts = [(name, amount) for name in differing if (amount := _difference(a.get(name), b.get(name))) is not None]
    return Comparison(
        equal=digests[0] == digests[1],
        first=str(first),
        second=str(second),
        steps=(payloads[0]["state"]["step"], payloads[1]["state"]["step"]),
        digests=(digests[0], digests[1]),
        first_differing_step=None if digests[0] == digests[1] else _first_differing_step(first, second),
        differing=tuple(differing),
        max_difference=dict(amounts).get(differing[0]) if differing else None,
        greatest=max(amounts, key=lambda pair: pair[1], default=None),
        conditions=tuple(other_conditions(first, second)),
    )


def _newest_payload(folder: Path) -> dict[str, Any]:
    found = newest_whole(folder / "checkpoints")
    if found is None:
        runs = sorted(path.parent.name for path in folder.glob("*/checkpoints"))
        raise UserError(
            "V101",
            f"no whole checkpoint in {folder}" if folder.is_dir() else f"no run folder {folder}",
            f"it holds runs: {', '.join(runs[-3:])}" if runs else "a comparison needs the end of both runs",
            f"give one of them: {folder / runs[-1]}" if runs else "give run folders such as runs/RECIPE/TIME",
        )
    return found[1]


def _leaves(tree: Any, prefix: str) -> list[tuple[str, Any]]:
    if isinstance(tree, dict):
        return [leaf for key, value in tree.items() for leaf in _leaves(value, f"{prefix}{key}.")]
    if isinstance(tree, list) and any(isinstance(value, (dict, list, Tensor)) for value in tree):
        return [leaf for index, value in enumerate(tree) for leaf in _leaves(value, f"{prefix}{index}.")]
    return [(prefix.rstrip("."), tree)]


def _difference(a: Any, b: Any) -> float | None:
    if not (isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape == b.shape and a.numel()):
        return None
    amount = float((a.double() - b.double()).abs().max())
    return amount if math.isfinite(amount) else None


def _first_differing_step(first: Path, second: Path) -> int | None:
    records = [_records(folder / "metrics.jsonl") for folder in (first, second)]
    for step in sorted(records[0].keys() & records[1].keys()):
        if records[0][step] != records[1][step]:
            return step
    return None


def _records(path: Path) -> dict[int, tuple[Any, Any]]:
    """step -> (loss, digest of the weights where traced)."""
    if not path.is_file():
        return {}
    found: dict[int, tuple[Any, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        # The last line of a run that was killed may be cut.
        with contextlib.suppress(ValueError, KeyError):
            row = json.loads(line)
            if row["kind"] == "train":
                found[row["step"]] = (row["loss"], row.get("weights_digest"))
    return found


def other_conditions(first: Path, second: Path) -> list[str]:
    """What the manifests of two runs say that exactness does not reach across: threads, versions, devices."""
    return differences(read_grounds(first), read_grounds(second))
