"""Where exactness ends: what two runs must have in common for their bytes to be equal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Ground = dict[str, Any]
"""Name of a condition -> its value, for people to read."""

# Package and processor matter through their kernels: another version or instruction set may round otherwise.
_PACKAGES = ("torch", "torchvision", "torch_npu", "timm", "numpy")


def ground_of(manifest: Mapping[str, Any]) -> Ground:
    """The conditions of a run that are no part of its recipe, from its manifest."""
    device, packages = manifest.get("device", {}), manifest.get("packages", {})
    ground: Ground = {
        "threads a process": manifest.get("threads"),
        "platform": manifest.get("platform"),
        "device": device.get("device"),
        "instruction set": device.get("instructions"),
        **{package: packages.get(package) for package in _PACKAGES},
    }
    if manifest.get("simulated"):
        # A simulated NPU computes with the CPU's kernels, and gives the CPU's bits.
        ground["platform"], ground["device"] = "cpu", None
    if manifest.get("reduction") == "fast":
        ground["world size, with the fast reduction"] = manifest.get("world_size")
    return {name: value for name, value in ground.items() if value is not None}


def read_grounds(run_dir: Path) -> list[Ground]:
    """Every ground that a run stood on, in order: a run that was resumed elsewhere has several; none without a manifest."""
    path = run_dir / "manifest.json"
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [*manifest.get("earlier_grounds", []), ground_of(manifest)]


def with_earlier(manifest: dict[str, Any], earlier: list[Ground]) -> dict[str, Any]:
    """The manifest of a run that goes on: grounds it stood on before stay on record, each once, where they differ."""
    kept: list[Ground] = []
    for ground in earlier:
        if ground not in kept and ground != ground_of(manifest):
            kept.append(ground)
    return {**manifest, "earlier_grounds": kept} if kept else manifest


def differences(first: list[Ground], second: list[Ground]) -> list[str]:
    """Conditions that are not the same throughout both lists, each with all its values."""
    grounds = [*first, *second]
    names = dict.fromkeys(name for ground in grounds for name in ground)
    found = []
    for name in names:
        # One side that does not know a condition says nothing about it.
        values = list(dict.fromkeys(str(ground[name]) for ground in grounds if name in ground))
        if len(values) > 1:
            found.append(f"{name}: {' and '.join(values)}")
    return found


def warning_on_resume(earlier: list[Ground], now: Ground) -> str | None:
    """What to tell who goes on with a run on other ground; None when it is the same."""
    found = differences(earlier[-1:], [now])
    if not found:
        return None
    return f"the run goes on under other conditions ({'; '.join(found)}): it may part from one never stopped"
