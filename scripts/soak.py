"""Laws 1, 2, 3 and 7 at length: `make soak`, or `python scripts/soak.py --faults 220`.

First every variation of a small recipe on 1, 2, 3, 4, 7 and 8 ranks; then faults drawn with a fixed seed, each followed
to the end. Every run must end in the undisturbed run's digest and leave no process behind. `--write` puts the tables
into docs/exactness.md. Ranks are forked from a warm process; every tenth fault goes through the command as users start it.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from helpers.forked import ForkedJob, launch_forked
from helpers.launching import launch_run, processes_of, summary_of
from helpers.ranks import run_ranks
from helpers.training import train_keywords
from helpers.variations import VARIATIONS

from unisono.job.launch import LaunchResult
from unisono.train.checkpoint import newest_whole, numbered_checkpoints

BEGIN, END = "<!-- soak: begin -->", "<!-- soak: end -->"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "exactness.md"
WORLDS = (2, 2, 2, 3, 3, 4, 4, 7, 8)
ALL_WORLDS = (1, 2, 3, 4, 7, 8)
PHASES = ("forward", "backward", "reduce", "update", "evaluate", "save", "data", "start")
RANK_KINDS = ("kill", "kill", "kill", "raise", "exit", "hang", "stop")
KINDS = {
    "kill": "SIGKILL of a rank",
    "raise": "a rank raises",
    "exit": "a rank exits",
    "hang": "a rank hangs",
    "stop": "SIGSTOP of a rank",
    "sigterm": "SIGTERM to a rank",
    "sigint": "SIGINT to a rank",
    "launcher sigterm": "SIGTERM to the launcher, twice",
    "launcher sigint": "SIGINT to the launcher",
    "launcher kill": "SIGKILL of the launcher",
    "device": "a device fails for good (--elastic)",
    "cut": "the newest checkpoint is cut",
    "flip": "one bit of the newest checkpoint flips",
}


@dataclass(frozen=True)
class Planned:
    """One fault."""

    world: int
    kind: str
    rank: int
    phase: str
    step: int
    next_world: int
    """Where a stopped run goes on."""

    def words(self, kind: str) -> tuple[str, str]:
        """For the command line."""
        target = "device" if self.kind == "device" else "rank"
        return "--fault", f"{target}={self.rank},step={self.step},phase={self.phase},kind={kind}"


@dataclass
class Tally:
    """The faults of one kind on one world size."""

    faults: int = 0
    equal: int = 0
    restarts: int = 0
    left_behind: int = 0
    misnamed: int = 0
    seconds_lost: list[float] = field(default_factory=list)


def plan(count: int, seed: int) -> list[Planned]:
    """Faults drawn with a fixed seed: half deaths and hangs of ranks, half everything else."""
    generator = random.Random(seed)
    others = [kind for kind in KINDS if kind not in RANK_KINDS]
    drawn = []
    for number in range(count):
        kind = generator.choice(RANK_KINDS) if number % 2 else generator.choice(others)
        world, phase, step = generator.choice(WORLDS), generator.choice(PHASES), generator.randrange(1, 12)
        if kind not in ("kill", "raise", "exit") and phase == "start":
            phase = "forward"  # hanging at start-up is waited for as for a slow compiler, and a signal finds nothing to save
        if phase in ("evaluate", "save"):
            step = min(step, 8)  # the next one of these is at 12 otherwise, where nothing is left to lose
        if phase == "start":
            step = 0
        drawn.append(Planned(world, kind, generator.randrange(world), phase, step, generator.choice(ALL_WORLDS)))
    return drawn


def follow(planned: Planned, folder: Path, tally: Tally, generator: random.Random, *, as_a_user: bool) -> None:
    """Inject one fault, go on to the end, and note what came of it; the digest is the caller's to judge."""
    if planned.kind in RANK_KINDS or planned.kind == "device":
        start = launch_run if as_a_user else launch_forked
        elastic = planned.kind == "device"
        words = planned.words("kill" if elastic else planned.kind)
        result = start(folder, *words, devices=planned.world, max_restarts=3, hang_timeout_s=10, elastic=elastic)
        tally.restarts += result.restarts
        tally.seconds_lost.append(result.seconds_lost)
        tally.misnamed += any(failure.rank != planned.rank for failure in result.failures[:1])
        tally.left_behind += len(processes_of(folder))
        return
    if planned.kind.startswith("launcher"):
        tally.left_behind += strike_launcher(planned, folder)
    else:
        kind = planned.kind if planned.kind.startswith("sig") else "sigterm"
        launch_forked(folder, *planned.words(kind), devices=planned.world)
        if planned.kind in ("cut", "flip"):
            damage(numbered_checkpoints(folder / "run" / "checkpoints")[0], planned.kind, generator)
    launch_forked(folder, devices=planned.next_world)


def strike_launcher(planned: Planned, folder: Path) -> int:
    """Send the launcher a signal while a rank is busy; the number of processes that outlive it."""
    job = ForkedJob(folder, *planned.words("slow"), devices=planned.world)
    names = {"sigterm": [signal.SIGTERM] * 2, "sigint": [signal.SIGINT], "kill": [signal.SIGKILL]}
    try:
        job.wait_for_log(planned.rank, "injected: slow")
        for number in names[planned.kind.split()[1]]:
            job.signal(number)
        if not planned.kind.endswith("kill"):
            answer: LaunchResult = job.answer()
            assert answer.signal or answer.ok, answer
        return len(job.left_behind())
    finally:
        job.kill()


def damage(path: Path, kind: str, generator: random.Random) -> None:
    """Cut a checkpoint anywhere, or flip one bit of it."""
    whole = bytearray(path.read_bytes())
    position = generator.randrange(len(whole))
    if kind == "cut":
        path.write_bytes(whole[:position])
    else:
        whole[position] ^= 1 << generator.randrange(8)
        path.write_bytes(whole)


def law_1(root: Path, names: list[str]) -> tuple[list[str], bool]:
    """Rows of a table: every variation on every world size."""
    rows, whole = [], True
    for number, name in enumerate(names):
        summaries = [
            run_ranks(world, train_keywords, str(root / f"v{number}_{world}"), VARIATIONS[name], {}, timeout_s=300)[0]
            for world in ALL_WORLDS
        ]
        equal = sum(
            summary["digest"] == summaries[0]["digest"] and summary["evaluation"] == summaries[0]["evaluation"]
            for summary in summaries
        )
        whole &= equal == len(ALL_WORLDS)
        rows.append(
            f"| {name} | {summaries[0]['skipped_steps']} | {equal} of {len(ALL_WORLDS)} | `{summaries[0]['digest'][:16]}` |"
        )
        print(rows[-1], flush=True)
    return rows, whole


def law_3(root: Path, count: int, seed: int) -> tuple[list[str], bool]:
    """Rows of a table: world size x fault."""
    tallies: dict[tuple[str, int], Tally] = defaultdict(Tally)
    expected = None
    for world in ALL_WORLDS:
        launch_forked(root / f"plain_{world}", devices=world)
        digest = summary_of(root / f"plain_{world}")["digest"]
        expected = expected or digest
        assert digest == expected, f"world size {world} without any fault"
    generator = random.Random(seed + 1)
    for number, planned in enumerate(plan(count, seed), 1):
        tally, folder = tallies[planned.kind, planned.world], root / f"run_{number}"
        tally.faults += 1
        started = time.monotonic()
        try:
            follow(planned, folder, tally, generator, as_a_user=number % 10 == 0)
            found = newest_whole(folder / "run" / "checkpoints")
            equal = summary_of(folder)["digest"] == expected and found is not None and found[1]["state"]["step"] == 12
        except Exception as error:  # one that was not survived must not end the soak
            equal = False
            print(f"  {type(error).__name__}: {error}", flush=True)
        tally.equal += equal
        verdict = "equal" if equal else "NOT EQUAL"
        print(f"{number}/{count} {time.monotonic() - started:.0f} s {planned}: {verdict}", flush=True)
    rows = []
    for (kind, world), tally in sorted(tallies.items(), key=lambda item: (list(KINDS).index(item[0][0]), item[0][1])):
        lost = tally.seconds_lost
        shown = f"{sum(lost) / len(lost):.1f} (up to {max(lost):.1f})" if lost else "-"
        rows.append(
            f"| {KINDS[kind]} | {world} | {tally.faults} | {tally.equal} | {tally.restarts} | {shown} "
            f"| {tally.left_behind} | {tally.misnamed} |"
        )
    whole = all(tally.equal == tally.faults and tally.left_behind == 0 for tally in tallies.values())
    total, equal, restarts, left, misnamed = (
        sum(getattr(tally, name) for tally in tallies.values())
        for name in ("faults", "equal", "restarts", "left_behind", "misnamed")
    )
    rows.append(f"| all | | {total} | {equal} | {restarts} | | {left} | {misnamed} |")
    return rows, whole


def main() -> int:
    """Run the soak; exit code 1 when one thing was not survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=220)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--variations", type=int, default=len(VARIATIONS), help="how many of the variations")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/exactness.md")
    arguments = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="unisono-soak-") as root:
        variations, law_1_holds = law_1(Path(root), list(VARIATIONS)[: arguments.variations])
        faults, law_3_holds = law_3(Path(root), arguments.faults, arguments.seed)
    text = "\n".join(
        [
            f"Written by `python scripts/soak.py --faults {arguments.faults} --seed {arguments.seed} --write`, "
            f"{(time.monotonic() - started) / 60:.0f} minutes.",
            "",
            f"**Every variation on {', '.join(map(str, ALL_WORLDS))} ranks** (8 replicas): whole training state and every count.",
            "",
            "| variation | steps skipped | world sizes with equal digests | digest |",
            "|---|---|---|---|",
            *variations,
            "",
            "**Faults**: 12 steps of a perceptron with 8 replicas. Rank, phase and step are drawn; a run that was stopped goes "
            "on with a drawn number of ranks.",
            "",
            "| fault | world size | injected | equal digests | restarts | mean seconds lost | processes left | first rank misnamed |",
            "|---|---|---|---|---|---|---|---|",
            *faults,
            "",
            "Seconds lost: from the failing rank's last sign of life until the job is back at the step that failed, start-up included "
            "(ranks forked from a warm process; a tenth started as users start them, which costs some seconds of imports). Hanging "
            "ranks: the limit was 10 s.",
        ]
    )
    print(text)
    if arguments.write:
        page = PAGE.read_text(encoding="utf-8")
        head, rest = page.split(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    return 0 if law_1_holds and law_3_holds else 1


if __name__ == "__main__":
    sys.exit(main())
