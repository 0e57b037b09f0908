"""torch's elastic agent with two more senses: it sees ranks that hang, and errors that no restart can mend."""

from __future__ import annotations

import logging
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.distributed.elastic.agent.server.api import RunResult, WorkerGroup, WorkerSpec, WorkerState
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous import registry as rendezvous_registry

from unisono.errors import UserError
from unisono.job.control import Beat, forget_beats, read_beats, read_failures, record_failure
from unisono.job.outage import Outage

if TYPE_CHECKING:
    from unisono.job.launch import LaunchRequest

# Starting (imports, reading data, compiling kernels for the first step) may take this long whatever a step may.
_START_PATIENCE_S = 600.0
_LOOK_EVERY_S = 0.5


class HungRankError(RuntimeError):
    """A rank gave no sign of life for longer than the run allows."""


def worker_spec(request: LaunchRequest, processes: int, run_id: str) -> WorkerSpec:
    """torch's description of the job. One machine meets on a free loopback port, so that jobs never collide.

    Raises:
        UserError: J205 the rendezvous port is taken, J207 several machines without an endpoint.
    """
    alone = request.nodes == (1, 1)
    if not alone and not request.rdzv_endpoint:
        raise UserError(
            "J207",
            f"--nnodes {request.nodes[0]}:{request.nodes[1]} without --rdzv-endpoint",
            "machines must know where to meet",
            "add --rdzv-endpoint HOST:PORT of the first machine, the same on all",
        )
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
        **({"is_host": request.node_rank == 0} if alone or request.node_rank == 0 else {}),
    )
    try:
        handler = rendezvous_registry.get_rendezvous_handler(parameters)
    except Exception as error:
        raise UserError(
            "J205",
            f"no rendezvous at {parameters.endpoint}",
            str(error).strip().splitlines()[0],
            "end the job that holds the port, or choose another --rdzv-endpoint",
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

    def _restart_workers(self, worker_group: WorkerGroup) -> None:
        """Several machines: a rank failed here or elsewhere, or a machine came or went."""
        beats = read_beats(self._control)
        oldest = max((beat.seconds_ago for beat in beats), default=0.0)
        self.outage = self.outage.heard(self._control).failed(
            time.monotonic() - oldest, max((beat.step for beat in beats), default=0)
        )
        self.restarts = worker_group.spec.max_restarts - self._remaining_restarts
        os.environ["UNISONO_OUTAGE"] = self.outage.encode()
        self._stop_workers(worker_group)
        # Ranks may be others after this; what the dead ones said last must not be taken for theirs.
        forget_beats(self._control)
        super()._restart_workers(worker_group)

    def _is_final(self) -> bool:
        attempts = {int(path.name.split("_")[1]) for path in self._control.glob("failure_*.json")}
        return any(failure.user_error for attempt in attempts for failure in read_failures(self._control, attempt))

    def _end_hung_rank(self, worker_group: WorkerGroup) -> None:
        """When no rank has moved for too long, the one that is least far holds up the others."""
        beats = read_beats(self._control)
        if len(beats) < len(worker_group.workers):
            return
        starting = all(beat.step == 0 for beat in beats)
        patience = max(self._hang_timeout_s, _START_PATIENCE_S) if starting else self._hang_timeout_s
        if min(beat.seconds_ago for beat in beats) < patience:
            return
        culprit = min(beats, key=lambda beat: (*beat.progress, -beat.seconds_ago))
        for worker in worker_group.workers:
            if worker.global_rank == culprit.rank:
                self._end(culprit, int(worker.id))

    def _end(self, culprit: Beat, pid: int) -> None:
        stack = self._stack_of(culprit.rank, pid)
        error = HungRankError(
            f"rank {culprit.rank} gave no sign of life for {culprit.seconds_ago:.0f} s (limit {self._hang_timeout_s:g} s) "
            f"in {culprit.phase} of step {culprit.step}\n{stack}"
        )
        record_failure(
            self._control,
            error,
            rank=culprit.rank,
            attempt=int(os.environ["UNISONO_ATTEMPT"]) + self.restarts,
            step=culprit.step,
            phase=culprit.phase,
        )
        os.kill(pid, signal.SIGKILL)

    def _stack_of(self, rank: int, pid: int) -> str:
        """Where the rank stands, by Python's fault handler; a stopped process does not answer."""
        path = self._control / f"stack_{rank}"
        if not path.exists():
            return ""
        os.kill(pid, signal.SIGUSR1)
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline and path.stat().st_size == 0:
            time.sleep(0.02)
        return path.read_text(encoding="utf-8", errors="replace")

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
