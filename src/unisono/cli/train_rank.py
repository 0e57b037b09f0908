"""One rank of `unisono train`: its log, its signs of life, how it ends."""

from __future__ import annotations

import atexit
import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unisono.cli import render
from unisono.errors import ExitCode, UserError

if TYPE_CHECKING:
    from unisono.job.control import StopFlag
    from unisono.job.launch import WorkerEnvironment
    from unisono.job.world import World
    from unisono.platforms.base import Platform
    from unisono.recipe.load import LoadedRecipe
    from unisono.train.pulse import Pulse
    from unisono.train.run import RunRequest


def choose_platform(options: dict[str, Any]) -> Platform:
    """The platform asked for; simulated NPUs are set up first.

    Raises:
        UserError: P1xx, or P107 for --simulate on another platform.
    """
    if options["simulate"]:
        if options["platform"] not in ("npu", "auto"):
            raise UserError(
                "P107",
                f"--simulate with --platform {options['platform']}",
                "only NPUs are simulated",
                "use --platform npu --simulate",
            )
        from unisono.simulator import activate

        activate(devices=int(options["devices"]) if options["devices"].isdigit() else 8)
        options = {**options, "platform": "npu"}
    from unisono.platforms.select import select_platform

    return select_platform(options["platform"])


def run_rank(
    options: dict[str, Any], loaded: LoadedRecipe, world: World, surroundings: WorkerEnvironment, stop: StopFlag
) -> ExitCode:
    """Run one rank to its end and say how the process is to exit."""
    with ending_well(world, surroundings, options["fault"] or []) as pulse:
        stopped = _run(options, loaded, world, surroundings, pulse, stop)
    # Under our launcher a stop is told by the summary; to a foreign one by the exit code.
    return ExitCode.STOPPED if stopped and surroundings.control_dir is None else ExitCode.OK


@contextmanager
def ending_well(world: World, surroundings: WorkerEnvironment, faults: Sequence[str] = ()) -> Iterator[Pulse]:
    """Under our launcher: a log of its own, signs of life, and a death that is recorded before it spreads."""
    from unisono.train.pulse import Pulse

    launched = surroundings.control_dir is not None
    if launched:
        _die_with_parent()
        # Runs last of all exit handlers, the device's own included. A destructor that crashes beside threads of the
        # collectives would look like a failed rank, and a job that has nothing left to do would be started again.
        atexit.register(_exit_at_once, ExitCode.OK)
    pulse = Pulse(None, None)
    try:
        if launched:
            _take_over_output(surroundings, world.rank)
        pulse = _pulse(faults, world, surroundings)
        yield pulse
    except BaseException as error:
        if not launched:
            raise
        _leave(error, world, surroundings, pulse)


def _run(
    options: dict[str, Any],
    loaded: LoadedRecipe,
    world: World,
    surroundings: WorkerEnvironment,
    pulse: Pulse,
    stop: StopFlag,
) -> bool:
    from unisono.cli.reporters import ToReporter, choose_reporter
    from unisono.train.run import run

    request = _request(options, loaded, world, surroundings)
    reporter = choose_reporter(as_json=options["json"])
    if world.rank == 0:
        logging.getLogger("unisono").addHandler(ToReporter(reporter))
    summary = run(request, reporter, pulse, stop)
    if world.rank == 0 and options["modelzoo_log"] is not None:
        _write_modelzoo_log(options, summary)
    return bool(summary["stopped"])


def _request(
    options: dict[str, Any], loaded: LoadedRecipe, world: World, surroundings: WorkerEnvironment
) -> RunRequest:
    from unisono.cli.train import thread_count
    from unisono.train.run import RunRequest

    if options["bind_cores"]:
        from unisono.job.affinity import bind_cores

        bind_cores(world.local_rank, world.local_world_size)
    return RunRequest(
        recipe=loaded.recipe,
        data_path=options["data_path"],
        platform=choose_platform(options),
        world=world,
        threads=thread_count(options),
        runs_dir=options["runs_dir"],
        run_dir=surroundings.run_dir or options["run_dir"],
        resume=options["resume"],
        allow_changed=tuple(options["allow_changed"] or ()),
        # Beside the launcher's watch the group's own limit is only a last resort; alone it is the watch.
        collective_timeout_s=options["hang_timeout"] * (4 if surroundings.control_dir else 1),
        record_every=options["record_every"],
        trace=options["trace"],
        attempt=surroundings.attempt,
        started=surroundings.started,
        stop_after=options["stop_after"],
        dry_run=options["dry_run"],
        provenance={key: str(value) for key, value in loaded.overrides.items()},
    )


def _pulse(texts: Sequence[str], world: World, surroundings: WorkerEnvironment) -> Pulse:
    from unisono.job.control import Heartbeat
    from unisono.job.launch import assigned_device
    from unisono.job.outage import Outage
    from unisono.train.faults import FaultPlan, parse_fault
    from unisono.train.pulse import Pulse

    faults = [parse_fault(text) for text in texts]
    plan = FaultPlan(faults, world.rank, assigned_device(world.local_rank), surroundings.attempt)
    heartbeat = Heartbeat(surroundings.control_dir, world.rank) if surroundings.control_dir else None
    folder = surroundings.control_dir
    on_back = partial(Outage.tell, folder=folder) if folder is not None and world.rank == 0 else None
    pulse = Pulse(heartbeat, plan, surroundings.outage, on_back)
    pulse.at("start", 0)
    return pulse


def _leave(error: BaseException, world: World, surroundings: WorkerEnvironment, pulse: Pulse) -> None:
    """Record what this rank died of and end at once: other threads may wait for ranks that are gone."""
    from unisono.job.control import record_failure

    assert surroundings.control_dir is not None
    failure = record_failure(
        surroundings.control_dir,
        error,
        rank=world.rank,
        attempt=surroundings.attempt,
        step=pulse.step,
        phase=pulse.phase,
    )
    logging.getLogger("rank").error(
        "rank %d failed in %s of step %d\n%s", world.rank, pulse.phase, pulse.step, failure.traceback
    )
    _exit_at_once(error.exit_code if isinstance(error, UserError) else ExitCode.CRASHED)


def _exit_at_once(code: ExitCode) -> None:
    """End the process without waiting for threads and without C++ destructors."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _take_over_output(surroundings: WorkerEnvironment, rank: int) -> None:
    """One log a rank; rank 0 keeps the console and logs besides. SIGUSR1 shows where the rank stands."""
    assert surroundings.run_dir is not None
    assert surroundings.control_dir is not None
    path = surroundings.run_dir / "logs" / f"rank_{rank}.log"
    try:
        handler = logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        raise UserError(
            "C105", f"cannot write {path}", error.strerror or str(error), "choose another folder with --runs-dir"
        ) from error
    # A log on a full disk loses lines; the traceback that logging would print for each helps nobody.
    logging.raiseExceptions = False
    handler.setFormatter(logging.Formatter(f"%(asctime)s [rank{rank}] %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    for name in ("unisono", "rank"):
        logging.getLogger(name).setLevel(logging.INFO)
    logging.getLogger("rank").info("rank %d starts, attempt %d, process %d", rank, surroundings.attempt, os.getpid())
    if rank:
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, sys.stdout.fileno())
        os.dup2(file, sys.stderr.fileno())
    stack = open(surroundings.control_dir / f"stack_{rank}", "w", encoding="utf-8")  # noqa: SIM115  # the fault handler writes to it until the end
    faulthandler.register(signal.SIGUSR1, file=stack, all_threads=True)


def _die_with_parent() -> None:
    """Ask the kernel to kill this rank when its launcher is killed, so that none is left behind (Linux)."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1  # <sys/prctl.h>
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _write_modelzoo_log(options: dict[str, Any], summary: dict[str, Any]) -> None:
    from unisono.metrics.modelzoo import write_modelzoo_log

    folder: Path = options["modelzoo_log"]
    for text in write_modelzoo_log(summary, folder, case_name=options["case_name"], network=options["network"]):
        # With --json standard output holds one JSON document and nothing else.
        (render.note if options["json"] else render.line)(text)
