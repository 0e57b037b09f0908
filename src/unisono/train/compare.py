"""Where two runs part: the first step, the first tensor, the greatest difference."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from unisono.errors import UserError
from unisono.train.checkpoint import newest_whole
from unisono.train.digest import digest_of


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
    """Greatest absolute difference of the first differing tensor."""

    def lines(self) -> list[str]:
        """For a person."""
        if self.equal:
            return [
                f"equal: {self.first} and {self.second} hold the same bytes after {self.steps[0]} steps",
                f"digest {self.digests[0]}",
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
    return Comparison(
        equal=digests[0] == digests[1],
        first=str(first),
        second=str(second),
        steps=(payloads[0]["state"]["step"], payloads[1]["state"]["step"]),
        digests=(digests[0], digests[1]),
        first_differing_step=None if digests[0] == digests[1] else _first_differing_step(first, second),
        differing=tuple(differing),
        max_difference=_difference(a.get(differing[0]), b.get(differing[0])) if differing else None,
    )


def _newest_payload(folder: Path) -> dict[str, Any]:
    found = newest_whole(folder / "checkpoints")
    if found is None:
        raise UserError(
            "V101",
            f"no whole checkpoint in {folder}",
            "a comparison needs the end of both runs",
            "give run folders such as runs/RECIPE/TIME",
        )
    return found[1]


def _leaves(tree: Any, prefix: str) -> list[tuple[str, Any]]:
    if isinstance(tree, dict):
        return [leaf for key, value in tree.items() for leaf in _leaves(value, f"{prefix}{key}.")]
    if isinstance(tree, list) and any(isinstance(value, (dict, list, Tensor)) for value in tree):
        return [leaf for index, value in enumerate(tree) for leaf in _leaves(value, f"{prefix}{index}.")]
    return [(prefix.rstrip("."), tree)]


def _difference(a: Any, b: Any) -> float | None:
    if isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape == b.shape:
        return float((a.double() - b.double()).abs().max())
    return None


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
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["step"]: (row["loss"], row.get("weights_digest")) for row in rows if row["kind"] == "train"}


def honest_reasons(first: Path, second: Path) -> str | None:
    """Why two runs may rightly differ: what their manifests say of threads, device and versions."""
    manifests = [
        json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        for folder in (first, second)
        if (folder / "manifest.json").is_file()
    ]
    if len(manifests) < 2:
        return None
    reasons = [
        f"{name}: {a} and {b}"
        for name, a, b in (
            ("threads", manifests[0]["threads"], manifests[1]["threads"]),
            ("platform", manifests[0]["platform"], manifests[1]["platform"]),
            ("device", manifests[0]["device"].get("device"), manifests[1]["device"].get("device")),
            ("torch", manifests[0]["packages"].get("torch"), manifests[1]["packages"].get("torch")),
        )
        if a != b
    ]
    return "exactness ends where these differ: " + "; ".join(reasons) if reasons else None
