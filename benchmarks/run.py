"""`make bench`: measures side by side and writes docs/benchmarks.md.

    python benchmarks/run.py --write [--cifar10 DIR] [--imagenet DIR] [--only NAME ...]

Every measurement is kept in a JSON beside the page as soon as it is made, so that a run that is interrupted is not lost;
`--only` measures some anew and leaves the others as they are. `--quick` runs small forms once, for a smoke test.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from decode_rows import decode_rows
from loops import loop_rows
from processes import forecast_rows, scaling_rows, tutorial_rows, zoo_rows
from record import Measurement, Row, keep, load, page_text, table, write_page
from startup import startup_rows
from steps import overhead_rows, step_rows

from unisono.bench.case import machine

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
Answer = tuple[list[Row], list[str]]

MEASUREMENTS: dict[str, Callable[[argparse.Namespace], Answer]] = {
    "tutorial": lambda given: (tutorial_rows(**how(given)), []),
    "step-mobilenet": lambda given: (step_rows("mobilenet", 2.0, **how(given)), []),
    "step-resnet": lambda given: (step_rows("resnet", 1.25, **how(given)), []),
    "loops-resnet": lambda given: loop_rows("resnet", given.cifar10, **how(given)),
    "loops-mobilenet": lambda given: loop_rows("mobilenet", given.imagenet, **how(given)),
    "decode": lambda given: decode_rows(given.photographs or given.imagenet, **how(given)),
    "scaling-resnet": lambda given: (scaling_rows("resnet", **how(given)), []),
    "scaling-mobilenet": lambda given: (scaling_rows("mobilenet", **how(given)), []),
    "overhead": lambda given: (overhead_rows(**how(given)), []),
    "forecast": lambda given: (forecast_rows(**how(given)), []),
    "forecast-zoo": lambda given: (zoo_rows(), []),
    "startup": lambda given: (startup_rows(**how(given)), []),
}
"""By name, in the page's order."""


def how(given: argparse.Namespace) -> dict[str, Any]:
    """What every measurement takes."""
    return {"pairs": 1 if given.quick else given.pairs, "quick": given.quick}


def measured(name: str, given: argparse.Namespace) -> Measurement:
    """Carry one measurement out."""
    before, started = os.getloadavg()[0], time.perf_counter()
    rows, said = MEASUREMENTS[name](given)
    facts = machine()
    place = {
        "date": time.strftime("%Y-%m-%d"),
        "seconds": time.perf_counter() - started,
        "processor": facts["processor"],
        "cores": facts["cores"],
        "versions": versions(facts["python"]),
        "load_before": before,
        "load_after": os.getloadavg()[0],
    }
    options = " ".join(
        f"--{option} DIR" for option in ("cifar10", "imagenet", "photographs") if getattr(given, option) is not None
    )
    command = " ".join(["python benchmarks/run.py", f"--only {shlex.quote(name)}", options]).strip()
    return Measurement(rows, command, place, said)


def versions(python: str) -> str:
    """What the figures were taken with."""
    found = [f"Python {python}"]
    for package in ("torch", "torchvision", "timm", "Pillow"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def parse(words: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small forms, once each: shows that all of it runs")
    parser.add_argument("--only", action="append", choices=MEASUREMENTS, help="measure this one; may be repeated")
    parser.add_argument("--pairs", type=int, default=5, help="how often each pair is measured (default 5)")
    parser.add_argument("--cifar10", type=Path, help="folder of CIFAR-10's Python batches")
    parser.add_argument("--imagenet", type=Path, help="image folder with train/ and val/")
    parser.add_argument(
        "--photographs", type=Path, help="folder or tar of JPEGs for decoding; --imagenet's when left out"
    )
    parser.add_argument("--write", action="store_true", help="keep the figures and write docs/benchmarks.md")
    parser.add_argument("--page", type=Path, default=PAGE, help="another page to write; its JSON lies beside it")
    given = parser.parse_args(words)
    for option in ("cifar10", "imagenet", "photographs"):
        place: Path | None = getattr(given, option)
        if place is not None and not place.exists():
            parser.error(f"--{option} {place}: no such folder")
    if given.pairs < 1:
        parser.error("--pairs is at least 1")
    return given


def main(words: list[str] | None = None) -> int:
    """Measure, tell and keep."""
    given = parse(words)
    store = given.page.with_suffix(".json")
    kept = load(store)
    fresh: dict[str, Measurement] = {}
    for name in given.only or MEASUREMENTS:
        fresh[name] = measured(name, given)
        print(f"{name}, {fresh[name].place['seconds']:.0f} s", flush=True)
        print("\n".join([table(fresh[name].rows), *fresh[name].said]), flush=True)
        if given.write:
            kept[name] = fresh[name]
            keep(store, {known: kept[known] for known in MEASUREMENTS if known in kept})
            write_page(given.page, load(store))
    if not given.write:
        print(page_text(fresh))
    return 0


if __name__ == "__main__":
    sys.exit(main())
