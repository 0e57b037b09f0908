"""A few hundred faults on purpose, each followed to the end: `make soak`, or `python scripts/soak.py --faults 200`.

Every run must end in the undisturbed run's digest, leave no process behind, and name the rank that was hit. Writes the
table of docs/exactness.md.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from helpers.launching import launch_run, processes_of, summary_of

BEGIN, END = "<!-- soak: begin -->", "<!-- soak: end -->"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "exactness.md"
KINDS = ("kill", "kill", "kill", "raise", "exit", "hang", "stop", "sigterm", "sigint")
PHASES = ("forward", "backward", "reduce", "update", "evaluate", "save", "data", "start")
WORLDS = (2, 3, 4)


@dataclass
class Tally:
    """The faults of one kind on one world size."""

    faults: int = 0
    equal: int = 0
    restarts: int = 0
    seconds: float = 0.0
    left_behind: int = 0
    misnamed: int = 0


def plan(count: int, seed: int) -> list[tuple[int, str, int, str, int]]:
    """(world size, kind, rank, phase, step), drawn with a fixed seed."""
    generator = random.Random(seed)
    drawn = []
    for _ in range(count):
        world = generator.choice(WORLDS)
        phase = generator.choice(PHASES)
        kind = generator.choice(KINDS)
        step = 0 if phase == "start" else generator.randrange(1, 11)
        # A signal at start-up finds nothing to save, and a hang there is waited for as for a slow compiler.
        if phase == "start" and kind in ("hang", "stop", "sigterm", "sigint"):
            kind = "kill"
        drawn.append((world, kind, generator.randrange(world), phase, step))
    return drawn


def one(folder: Path, world: int, kind: str, rank: int, phase: str, step: int, expected: str, tally: Tally) -> None:
    """Inject a fault, follow the run to its end, and judge it."""
    started = time.monotonic()
    fault = f"rank={rank},step={step},phase={phase},kind={kind}"
    result = launch_run(folder, "--fault", fault, devices=world, max_restarts=3, hang_timeout_s=8)
    if result.ok and summary_of(folder)["stopped"]:
        result = launch_run(folder, devices=world)
    tally.faults += 1
    tally.restarts += result.restarts
    tally.seconds += time.monotonic() - started
    tally.equal += bool(result.ok) and summary_of(folder)["digest"] == expected
    tally.left_behind += len(processes_of(folder))
    tally.misnamed += any(failure.rank != rank for failure in result.failures[:1])


def table(tallies: dict[tuple[int, str], Tally], plain_s: dict[int, float], count: int, seed: int) -> str:
    """The table in Markdown."""
    total = sum(tally.faults for tally in tallies.values())
    equal = sum(tally.equal for tally in tallies.values())
    lines = [
        f"`python scripts/soak.py --faults {count} --seed {seed}`: {total} faults, {equal} ended in the undisturbed run's digest.",
        "",
        "| world size | fault | injected | equal digests | restarts | mean seconds lost | processes left | first rank misnamed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (world, kind), tally in sorted(tallies.items()):
        lost = tally.seconds / tally.faults - plain_s[world]
        lines.append(
            f"| {world} | {kind} | {tally.faults} | {tally.equal} | {tally.restarts} | {lost:.1f} "
            f"| {tally.left_behind} | {tally.misnamed} |"
        )
    lines += [
        "",
        "Seconds lost: the run with the fault, all its restarts and start-ups included, minus an undisturbed one on as many processes.",
    ]
    return "\n".join(lines)


def main() -> int:
    """Run the soak; exit code 1 when one fault was not survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="put the table into docs/exactness.md")
    arguments = parser.parse_args()
    tallies: dict[tuple[int, str], Tally] = defaultdict(Tally)
    with tempfile.TemporaryDirectory(prefix="unisono-soak-") as root:
        plain_s, digests = {}, set()
        for world in (1, *WORLDS):
            started = time.monotonic()
            launch_run(Path(root) / f"plain_{world}", devices=world)
            plain_s[world] = time.monotonic() - started
            digests.add(summary_of(Path(root) / f"plain_{world}")["digest"])
        assert len(digests) == 1, digests
        expected = digests.pop()
        for number, (world, kind, rank, phase, step) in enumerate(plan(arguments.faults, arguments.seed), 1):
            tally = tallies[world, kind]
            before = tally.equal
            one(Path(root) / f"run_{number}", world, kind, rank, phase, step, expected, tally)
            verdict = "equal" if tally.equal > before else "NOT EQUAL"
            print(
                f"{number}/{arguments.faults} world {world} rank {rank} {kind} in {phase} of step {step}: {verdict}",
                flush=True,
            )
    text = table(tallies, plain_s, arguments.faults, arguments.seed)
    print(text)
    if arguments.write:
        page = PAGE.read_text(encoding="utf-8")
        head, rest = page.split(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    survived = all(tally.equal == tally.faults and tally.left_behind == 0 for tally in tallies.values())
    return 0 if survived else 1


if __name__ == "__main__":
    sys.exit(main())
