"""One process a device on this machine, through torch's elastic agent: restarts, hung ranks, lost devices, signals."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import psutil

from unisono.errors import ExitCode, UserError
from unisono.job.control import ENDED, Failure, first_failure, read_beats, read_failures
from unisono.job.outage import Outage

if TYPE_CHECKING:
    from torch.distributed.elastic.agent.server.api import WorkerSpec

CONTROL_VARIABLE = "UNISONO_CONTROL_DIR"
RUN_VARIABLE = "UNISONO_RUN_DIR"
ATTEMPT_VARIABLE = "UNISONO_ATTEMPT"
OUTAGE_VARIABLE = "UNISONO_OUTAGE"
DEVICES_VARIABLE = "UNISONO_DEVICES"
STARTED_VARIABLE = "UNISONO_STARTED"

# Seconds that ranks have to save and leave after a signal, before they are killed.
GRACE_S = 25

OnRestart = Callable[[Failure, int, int], None]
"""Called with (failure, next attempt, devices) before each restart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchRequest:
    """What to start on this machine."""

    command: Sequence[str]
    """The program of one rank, with its arguments."""
    devices: int
    run_dir: Path
    threads: int
    """Intra-op threads of each process; 0 leaves the libraries' own choice."""
    max_restarts: int = 3
    hang_timeout_s: float = 180.0
    elastic: bool = False
    """Go on without a device that fails twice in a row."""
    nodes: tuple[int, int] = (1, 1)
    """Fewest and most machines."""
    node_rank: int = 0
    rdzv_endpoint: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchResult:
    """How the job ended."""

    ok: bool
    restarts: int = 0
    failure: Failure | None = None
    """The failure that ended it, of the rank that failed first."""
    failures: tuple[Failure, ...] = ()
    """Every first failure, one an attempt."""
    signal: int | None = None
    """The signal that stopped the launcher."""
    devices: int = 0
    """Devices at the end; fewer than asked for after a loss."""
    seconds_lost: float = 0.0
    """From each failure until the job was back at the step that failed, start-up included."""


@dataclass(frozen=True, slots=True)
class WorkerEnvironment:
    """What the launcher tells a rank."""

    control_dir: Path | None
    run_dir: Path | None
    attempt: int
    outage: Outage = field(default_factory=Outage)
    started: float = field(default_factory=time.time)
    """When the command was started, in seconds since 1970."""


def read_worker_environment(env: Mapping[str, str] | None = None) -> WorkerEnvironment:
    """The launcher's words to this rank; empty under a foreign launcher."""
    env = os.environ if env is None else env
    control, run = env.get(CONTROL_VARIABLE), env.get(RUN_VARIABLE)
    attempt = int(env.get(ATTEMPT_VARIABLE, "0")) + int(env.get("TORCHELASTIC_RESTART_COUNT", "0") or 0)
    outage = Outage.decode(env.get(OUTAGE_VARIABLE, ""))
    started = float(env.get(STARTED_VARIABLE) or _process_start())
    return WorkerEnvironment(Path(control) if control else None, Path(run) if run else None, attempt, outage, started)


def _process_start() -> float:
    """Seconds since 1970; imports are part of what a user waits for."""
    return psutil.Process().create_time()


def assigned_device(local_rank: int, env: Mapping[str, str] | None = None) -> int:
    """The device number of a local rank: its own number, but for devices that the launcher left out."""
    listed = (os.environ if env is None else env).get(DEVICES_VARIABLE, "")
    numbers = [int(number) for number in listed.split(",") if number]
    return numbers[local_rank] if local_rank < len(numbers) else local_rank


def quieten_torch() -> None:
    """Leave out torch's warnings of its store, each a page of C++ frames, unless the user set the level; before it is imported."""
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")


def rank_command(arguments: Sequence[str]) -> list[str]:
    """The program of one rank: this command again, which finds its rank in the environment."""
    return [sys.executable, "-m", "unisono", *arguments]


def launch(request: LaunchRequest, on_restart: OnRestart | None = None) -> LaunchResult:
    """Run the job to its end, restarting it where it should be.

    One machine: a failed attempt is started anew here, up to `max_restarts` times, without a device that failed twice
    in a row when `elastic`. Several machines: torch's agents agree on restarts and membership among themselves.

    Raises:
        UserError: whatever coded error a rank raised first; nothing is restarted then.
    """
    with _environment_kept(), tempfile.TemporaryDirectory(prefix="unisono-") as folder, _shutdown_signals() as received:
        return _run_attempts(request, Path(folder), received, on_restart)


def _run_attempts(
    request: LaunchRequest, control: Path, received: list[int], on_restart: OnRestart | None
) -> LaunchResult:
    devices = list(range(request.devices))
    failures: list[Failure] = []
    outage = Outage()
    single = request.nodes == (1, 1)
    ok = False
    for attempt in range(request.max_restarts + 1 if single else 1):
        folder = control / f"attempt_{attempt}"
        folder.mkdir()
        deaths, outage = _run_agent(request, folder, devices, attempt, received, outage)
        if received or deaths is None:
            ok = not received
            break
        failure = _first_of(deaths, folder)
        failures.append(failure)
        error = failure.as_user_error()
        if error is not None:
            raise error
        if attempt == request.max_restarts or not single:
            break
        outage = outage.failed(_last_sign_of(failure.rank, folder), failure.step)
        if request.elastic:
            devices = _without_lost_device(devices, failures)
        if on_restart is not None:
            on_restart(failure, attempt + 1, len(devices))
    return LaunchResult(
        ok=ok,
        restarts=outage.restarts,
        failure=None if ok or received else failures[-1],
        failures=tuple(failures),
        signal=received[0] if received else None,
        devices=len(devices),
        seconds_lost=outage.over().seconds_lost,
    )


def _last_sign_of(rank: int, folder: Path) -> float:
    """When a rank was last seen alive, on the monotonic clock; now when it never was."""
    now = time.monotonic()
    return next((now - beat.seconds_ago for beat in read_beats(folder) if beat.rank == rank), now)


def _without_lost_device(devices: list[int], failures: list[Failure]) -> list[int]:
    """A device whose rank failed first twice in a row is taken for lost; the last one left is kept."""
    if (
        len(failures) < 2
        or len(devices) < 2
        or failures[-1].rank != failures[-2].rank
        or failures[-1].rank >= len(devices)
    ):
        return devices
    return [device for position, device in enumerate(devices) if position != failures[-1].rank]


def _first_of(deaths: list[Failure], folder: Path) -> Failure:
    """Join what ranks recorded with how their processes ended, and find the one that the rest followed from."""
    recorded = {failure.rank: failure for failure in read_failures(folder, deaths[0].attempt)}
    for death in deaths:
        if death.rank in recorded:
            recorded[death.rank] = replace(recorded[death.rank], exit_code=death.exit_code, signal=death.signal)
        else:
            # A rank that the agent itself ended, because another had failed, is not a cause.
            recorded[death.rank] = replace(
                death, collateral=death.signal in ("SIGTERM", ENDED.name) and len(deaths) > 1
            )
    first = first_failure(list(recorded.values()))
    assert first is not None
    return first


def _run_agent(
    request: LaunchRequest, folder: Path, devices: list[int], attempt: int, received: list[int], outage: Outage
) -> tuple[list[Failure] | None, Outage]:
    """One life of torch's agent: None when all ranks ended well, else how they died; and the outage as it stands."""
    from torch.distributed.elastic.multiprocessing.api import SignalException

    from unisono.job.agent import WatchfulAgent, worker_spec

    os.environ.update(_environment(request, folder, devices, attempt) | {OUTAGE_VARIABLE: outage.encode()})
    spec: WorkerSpec = worker_spec(request, len(devices), run_id=uuid.uuid4().hex[:12])
    agent = WatchfulAgent(spec, folder, request.hang_timeout_s, GRACE_S, outage)
    try:
        result = agent.run()
    except SignalException as stop:
        received.append(int(stop.sigval))
        return [], agent.outage.heard(folder)
    finally:
        spec.rdzv_handler.shutdown()
    outage = agent.outage.heard(folder)
    if not result.is_failed():
        return None, outage
    deaths = [
        Failure(
            rank=rank,
            attempt=agent.attempt,
            time=float(death.timestamp),
            exit_code=death.exitcode if death.exitcode >= 0 else None,
            signal=signal.Signals(-death.exitcode).name if death.exitcode < 0 else None,
            message=f"ended by {signal.Signals(-death.exitcode).name}"
            if death.exitcode < 0
            else f"ended with exit code {death.exitcode}",
            **agent.last_beat(rank),
        )
        for rank, death in result.failures.items()
    ]
    return deaths, outage


def _environment(request: LaunchRequest, folder: Path, devices: list[int], attempt: int) -> dict[str, str]:
    own = {
        CONTROL_VARIABLE: str(folder),
        RUN_VARIABLE: str(request.run_dir.resolve()),
        ATTEMPT_VARIABLE: str(attempt),
        DEVICES_VARIABLE: ",".join(str(device) for device in devices),
        STARTED_VARIABLE: repr(_process_start()),
    }
    if request.nodes != (1, 1):
        # torch 2.14 shares one store among all rounds of a job, in which restarted ranks find the addresses of dead ones.
        own["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    if request.threads:
        own["OMP_NUM_THREADS"] = str(request.threads)
    return {**own, **request.environment}


@contextmanager
def _environment_kept() -> Iterator[None]:
    """What ranks are to inherit is set in this process, whose own caller must not find it there afterwards."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _shutdown_signals() -> Iterator[list[int]]:
    """The first SIGTERM or SIGINT stops the agent, which passes it on; later ones change nothing while ranks save."""
    from torch.distributed.elastic.multiprocessing.api import SignalException

    received: list[int] = []
    seen: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if not seen:
            seen.append(number)
            raise SignalException(f"signal {number}", signal.Signals(number))

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        yield received
    except SignalException as error:
        # The signal came between two attempts, where no rank is alive.
        received.append(int(error.sigval))
        raise UserError(
            "J206",
            f"stopped by {error.sigval.name} while starting",
            "no rank was running, so nothing was lost",
            "start again; --resume auto goes on",
            exit_code=ExitCode.STOPPED,
        ) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
