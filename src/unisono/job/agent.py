"""torch's elastic agent with two more senses: it sees ranks that hang, and errors that no restart can mend."""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from torch.distributed.elastic.agent.server.api import RunResult, WorkerGroup, WorkerSpec, WorkerState
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous import registry as rendezvous_registry

from unisono.errors import UserError
from unisono.job.control import ENDED, Beat, forget_beats, read_beats, read_failures, record_failure
from unisono.job.outage import Outage

if TYPE_CHECKING:
    from unisono.job.launch import LaunchRequest

# Starting (imports, reading data, compiling kernels for the first step) may take this long whatever a step may.
_START_PATIENCE_S = 600.0
_LOOK_EVERY_S = 0.5
# Seconds that ranks have to go after ENDED; a stopped process goes by SIGKILL alone.
_END_S = 3
# Files whose code waits for other ranks: a rank that stands there is not the one that the others wait for.
_WAITING_IN = ("torch/distributed/distributed_c10d.py", "torch/distributed/rendezvous.py", "unisono/distributed/")


def _is_stopped(pid: int) -> bool:
    """Suspended by SIGSTOP, a debugger or a container's freezer."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.NoSuchProcess:
        return False


class HungRankError(RuntimeError):
    """A rank gave no sign of life for longer than the run allows."""


def worker_spec(request: LaunchRequest, processes: int, run_id: str) -> WorkerSpec:
    """torch's description of the job. One machine meets on a free loopback port, so that jobs never collide.

    Raises:
        UserError: J205 the rendezvous port is taken, J207 several machines without an endpoint.
    """
    alone = request.nodes == (1, 1)
    if not alone:
        _check_endpoint(request.rdzv_endpoint)
    parameters = RendezvousParameters(
        backend="c10d",
        endpoint=request.rdzv_endpoint or "127.0.0.1:0",
        run_id=run_id if alone else "unisono",
        min_nodes=request.nodes[0],
        max_nodes=request.nodes[1],
        local_addr="127.0.0.1" if alone else None,
        timeout=900,
        # A machine that is gone is missed after three of these; those that may still come are waited for so long.
        keep_alive_interval=2,
        last_call_timeout=10,
        is_host=request.node_rank == 0,
    )
    try:
        handler = rendezvous_registry.get_rendezvous_handler(parameters)
    except Exception as error:
        raise UserError(
            "J205",
            f"no rendezvous at {parameters.endpoint}",
            str(error.__cause__ or error).strip().splitlines()[0],
            "end the job that holds the port or choose another --rdzv-endpoint; the machine of that name has --node-rank 0",
        ) from error
    return WorkerSpec(
        role="rank",
        local_world_size=processes,
        entrypoint=request.command[0],
        args=tuple(request.command[1:]),
        rdzv_handler=handler,
        max_restarts=0 if alone else request.max_restarts,
        monitor_interval=0.1,
        local_addr="127.0.0.1" if alone else None,
    )


def _check_endpoint(endpoint: str) -> None:
    """Here at once, where torch would try for two minutes."""
    remedy = "add --rdzv-endpoint HOST:PORT of the first machine, the same on all"
    if not endpoint:
        raise UserError("J207", "--nnodes without --rdzv-endpoint", "machines must know where to meet", remedy)
    host, _, port = endpoint.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise UserError("J207", f"--rdzv-endpoint {endpoint}", "it is a name or address, a colon, and a port", remedy)
    try:
        socket.getaddrinfo(host.strip("[]"), int(port))
    except OSError as error:
        raise UserError(
            "J205",
            f"no rendezvous at {endpoint}",
            f"this machine knows no {host}: {error.strerror}",
            "write the address of the first machine in numbers, or add its name to /etc/hosts on every machine",
        ) from error


class WatchfulAgent(LocalElasticAgent):
    """Adds to torch's agent: the hung rank is named and ended, a coded error is final, a second signal is ignored."""

    def __init__(
        self, spec: WorkerSpec, control: Path, hang_timeout_s: float, grace_s: int, outage: Outage = Outage()
    ) -> None:
        logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
        super().__init__(
            spec, DefaultLogsSpecs(log_dir=str(control)), exit_barrier_timeout=60, shutdown_timeout=grace_s
        )
        self._control = control
        self._hang_timeout_s = hang_timeout_s
        self._looked = 0.0
        self.outage = outage
        """What restarts have cost, those before this agent's life included."""
        self.restarts = 0
        """Restarts that this agent made by itself, because a rank failed; several machines only."""

    @property
    def attempt(self) -> int:
        """The number of this life of the ranks, from 0."""
        return int(os.environ["UNISONO_ATTEMPT"]) + self.restarts

    def last_beat(self, rank: int) -> dict[str, Any]:
        """Step and phase of a rank's last sign of life."""
        for beat in read_beats(self._control):
            if beat.rank == rank:
                return {"step": beat.step, "phase": beat.phase}
        return {}

    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        result: RunResult = super()._monitor_workers(worker_group)
        if result.state == WorkerState.HEALTHY and time.monotonic() - self._looked > _LOOK_EVERY_S:
            self._looked = time.monotonic()
            self._end_hung_rank(worker_group)
        elif result.state == WorkerState.FAILED and self._is_final():
            self._remaining_restarts = 0
        return result

    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        ids: dict[int, Any] = super()._start_workers(worker_group)
        context = self._pcontext
        assert context is not None
        close = context.close

        def close_at_once(death_sig: signal.Signals | None = None, timeout: int = _END_S) -> None:
            close(death_sig or ENDED, timeout)

        # torch closes the rest itself as soon as one rank has failed, by SIGTERM, which ours take for a wish to save.
        context.close = close_at_once  # type: ignore[method-assign]  # torch has no setting for this signal
        return ids

    def _stop_workers(self, worker_group: WorkerGroup) -> None:
        self._shutdown(ENDED, _END_S)

    def _restart_workers(self, worker_group: WorkerGroup) -> None:
        """Several machines: a rank failed here or elsewhere, or a machine came or went."""
        beats = read_beats(self._control)
        oldest = max((beat.seconds_ago for beat in beats), default=0.0)
        self.outage = self.outage.heard(self._control).failed(
            time.monotonic() - oldest, max((beat.step for beat in beats), default=0)
        )
        failed = worker_group.spec.max_restarts - self._remaining_restarts
        if failed == self.restarts:
            # A machine came. torch does not count this as a restart, but it is another life of the ranks.
            os.environ["UNISONO_ATTEMPT"] = str(int(os.environ["UNISONO_ATTEMPT"]) + 1)
        self.restarts = failed
        os.environ["UNISONO_OUTAGE"] = self.outage.encode()
        self._stop_workers(worker_group)
        # Ranks may be others after this; what the dead ones said last must not be taken for theirs.
        forget_beats(self._control)
        super()._restart_workers(worker_group)

    def _is_final(self) -> bool:
        attempts = {int(path.name.split("_")[1]) for path in self._control.glob("failure_*.json")}
        errors = [
            failure.user_error
            for attempt in attempts
            for failure in read_failures(self._control, attempt)
            if failure.user_error
        ]
        # With several machines, ranks may not find each other because one of them is just going.
        alone = self._worker_group.spec.max_restarts == 0
        return any(alone or error["code"] != "J203" for error in errors)

    def _end_hung_rank(self, worker_group: WorkerGroup) -> None:
        """When no rank has moved for too long, the one that is least far holds up the others."""
        beats = read_beats(self._control)
        if len(beats) < len(worker_group.workers):
            return
        starting = all(beat.step == 0 for beat in beats)
        patience = max(self._hang_timeout_s, _START_PATIENCE_S) if starting else self._hang_timeout_s
        if min(beat.seconds_ago for beat in beats) < patience:
            return
        pids = {worker.global_rank: int(worker.id) for worker in worker_group.workers}
        here = [beat for beat in beats if beat.rank in pids]
        stacks = self._stacks_of({beat.rank: pids[beat.rank] for beat in here})

        def innocence(beat: Beat) -> tuple[float, ...]:
            # A stopped process is the cause however far it is; ranks that wait for it are asleep, but not stopped.
            waits = any(file in stacks[beat.rank] for file in _WAITING_IN)
            return (not _is_stopped(pids[beat.rank]), waits, *beat.progress, -beat.seconds_ago)

        culprit = min(here, key=innocence)
        self._end(culprit, pids[culprit.rank], stacks[culprit.rank])

    def _end(self, culprit: Beat, pid: int, stack: str) -> None:
        error = HungRankError(
            f"rank {culprit.rank} gave no sign of life for {culprit.seconds_ago:.0f} s (limit {self._hang_timeout_s:g} s) "
            f"in {culprit.phase} of step {culprit.step}\n{stack}"
        )
        record_failure(
            self._control,
            error,
            rank=culprit.rank,
            attempt=self.attempt,
            step=culprit.step,
            phase=culprit.phase,
        )
        os.kill(pid, signal.SIGKILL)

    def _stacks_of(self, pids: dict[int, int]) -> dict[int, str]:
        """Where ranks stand, by Python's fault handler; a stopped process does not answer."""
        paths = {rank: self._control / f"stack_{rank}" for rank in pids}
        asked = [rank for rank, path in paths.items() if path.exists()]
        for rank in asked:
            os.kill(pids[rank], signal.SIGUSR1)
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline and any(paths[rank].stat().st_size == 0 for rank in asked):
            time.sleep(0.02)
        return {
            rank: paths[rank].read_text(encoding="utf-8", errors="replace") if rank in asked else "" for rank in pids
        }

    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM, timeout: int = 30) -> None:
        # Ranks are saving now; another Ctrl-C must not leave them behind half way.
        before = {
            number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        }
        try:
            super()._shutdown(death_sig, timeout)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
