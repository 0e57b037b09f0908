"""Whole jobs whose processes are forked from a warm one: the same launcher, agent and ranks, without start-up's imports.

A launcher process leads a session of its own, so that whatever it leaves behind can be found by the session's number.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import traceback
from multiprocessing import popen_fork
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

from helpers.launching import arguments
from helpers.ranks import CONTEXT
from unisono.job.control import ENDED
from unisono.job.launch import LaunchRequest, LaunchResult


class ForkedJob:
    """A launcher in a process of its own. `answer` waits for its LaunchResult."""

    def __init__(self, folder: Path, *more: str, devices: int = 2, **request: Any) -> None:
        (folder / "run" / "logs").mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._end, theirs = CONTEXT.Pipe(duplex=False)
        options = {"max_restarts": 2, "hang_timeout_s": 30.0} | request
        words = [str(word) for word in arguments(folder, *more, devices=devices)]
        self.process = CONTEXT.Process(target=_launcher, args=(theirs, folder, words, devices, options))
        self.process.start()
        theirs.close()

    def answer(self, timeout_s: float = 100) -> LaunchResult:
        """How the job ended; a UserError of the launcher is raised here."""
        if not self._end.poll(timeout_s):
            self.kill()
            raise AssertionError(f"the job did not end within {timeout_s} s")
        try:
            kind, value = self._end.recv()
        except EOFError:
            kind, value = "traceback", "the launcher ended without an answer"
        self.process.join(timeout_s)
        if kind == "error":
            raise value
        if kind == "traceback":
            raise AssertionError(value)
        assert isinstance(value, LaunchResult)
        return value

    def signal(self, number: signal.Signals) -> None:
        """Send the launcher a signal."""
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def wait_for_log(self, rank: int, needle: str, limit_s: float = 60) -> None:
        """Until a rank's log holds a text."""
        _wait_for(self._folder / "run" / "logs" / f"rank_{rank}.log", needle, limit_s)

    def wait_for_output(self, needle: str, limit_s: float = 60) -> None:
        """Until the console's output holds a text."""
        _wait_for(self._folder / "output.txt", needle, limit_s)

    def listening(self) -> list[int]:
        """TCP ports that processes of this job listen on."""
        connections = [c for process in _session(self.process.pid or -1) for c in process.net_connections("tcp")]
        return sorted({c.laddr.port for c in connections if c.status == psutil.CONN_LISTEN})

    def left_behind(self, limit_s: float = 15) -> list[int]:
        """Processes of the job that still live after the limit."""
        pid = self.process.pid
        assert pid is not None
        _, alive = psutil.wait_procs(_session(pid), timeout=limit_s)
        return [process.pid for process in alive]

    def kill(self) -> None:
        """End everything of this job."""
        for process in _session(self.process.pid or -1):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.kill()
        self.process.join()


def launch_forked(folder: Path, *more: str, devices: int = 2, **request: Any) -> LaunchResult:
    """Run a job to its end; a process left behind is a failure of its own."""
    job = ForkedJob(folder, *more, devices=devices, **request)
    try:
        result = job.answer()
        assert job.left_behind() == []
    finally:
        job.kill()
    return result


def _wait_for(path: Path, needle: str, limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while not (path.exists() and needle in path.read_text(encoding="utf-8", errors="replace")):
        assert time.monotonic() < deadline, f"no {needle!r} in {path}"
        time.sleep(0.02)


def _session(leader: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _launcher(answer: Connection, folder: Path, words: list[str], devices: int, options: dict[str, Any]) -> None:
    os.setsid()
    output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    from torch.distributed.elastic.multiprocessing.api import ProcessFailure

    import unisono.job.agent as agent
    import unisono.job.launch as launch

    made = agent.worker_spec

    def forked_spec(*given: Any, **named: Any) -> Any:
        spec = made(*given, **named)
        spec.entrypoint, spec.args = _rank, ()
        return spec

    class ForkingAgent(agent.WatchfulAgent):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self._start_method = "fork"

        def _monitor_workers(self, group: Any) -> Any:
            # torch tells of all dead processes that it executed, but of one only that it forked.
            result = super()._monitor_workers(group)
            for worker in group.workers if result.is_failed() else []:
                code = self._pcontext._pc.processes[worker.local_rank].exitcode
                if code and worker.global_rank not in result.failures:
                    dead = ProcessFailure(worker.local_rank, worker.id, code, "<N/A>")
                    result.failures[worker.global_rank] = dead
            return result

        def _shutdown(self, *given: Any, **named: Any) -> None:
            # Forked ranks wait for this when they are done; it comes otherwise only when all of them are.
            if self._pcontext is not None and not any(p.exitcode for p in self._pcontext._pc.processes):
                self._pcontext._worker_finished_event.set()
            super()._shutdown(*given, **named)

    agent.worker_spec, agent.WatchfulAgent = forked_spec, ForkingAgent  # type: ignore[misc]  # in this process alone
    # torch ends the rest of forked ranks by SIGTERM, where the agent ends executed ones by its own signal.
    popen_fork.Popen.terminate = lambda popen: popen._send_signal(ENDED)  # type: ignore[method-assign]
    sys.argv = ["unisono", *words]
    command = launch.rank_command(words)
    request = LaunchRequest(command=command, devices=devices, run_dir=folder / "run", threads=1, **options)
    try:
        answer.send(("result", launch.launch(request)))
    except launch.UserError as error:
        answer.send(("error", error))
    except BaseException:
        answer.send(("traceback", traceback.format_exc()))


def _rank() -> None:
    """What `python -m unisono` does, from its arguments on."""
    import torch

    from unisono.cli.main import main

    torch.set_num_threads(1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    try:
        main()
    except SystemExit as end:
        if end.code:
            os._exit(end.code if isinstance(end.code, int) else 1)
