"""Running a command on simulated NPUs: once, or once for each device with the rank variables set."""

from __future__ import annotations

import ast
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from unisono.errors import UserError
from unisono.job.launch import free_port

LAUNCHES = ("auto", "each", "once")
_PYTHONS = ("python", "python3")
_RANK_NAMES = frozenset({"LOCAL_RANK", "RANK", "WORLD_SIZE"})
_GROUP_CALLS = frozenset({"init_process_group", "init_device_mesh"})
_SPAWNING_CALLS = frozenset({"spawn", "start_processes", "Process", "elastic_launch", "notebook_launcher"})
_SPAWNING_MODULES = ("mp", "multiprocessing", "torch.multiprocessing", "ctx", "context")
_GRACE_S = 10.0
_PR_SET_PDEATHSIG = 1

WriteLine = Callable[[str, bool], None]
"""Called with a line and whether it came from standard error."""


@dataclass(frozen=True, slots=True)
class SimulateResult:
    """How the command ended."""

    exit_code: int
    failed_rank: int | None = None
    """The rank that failed first, where each device had a process."""


def choose_launch(wanted: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """`each` or `once`.

    `auto` is `each` when the command is a Python script that takes its rank from the environment, or joins a process
    group, and starts no processes itself. Everything else, and anything under a launcher already, runs `once`.

    Raises:
        UserError: S108 another word.
    """
    if wanted not in LAUNCHES:
        raise UserError.unknown("S108", "launch", wanted, LAUNCHES)
    if wanted != "auto":
        return wanted
    env = os.environ if env is None else env
    script = script_of(command) if command else None
    if script is None or "RANK" in env or "TORCHELASTIC_RUN_ID" in env:
        return "once"
    return "each" if wants_ranks(script.read_text(encoding="utf-8", errors="replace")) else "once"


def script_of(command: Sequence[str]) -> Path | None:
    """The Python file that the command runs; None for a module, a -c text or another program."""
    if Path(command[0]).name not in (*_PYTHONS, Path(sys.executable).name):
        return None
    rest = list(command[1:])
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-m", "-c") or option.startswith(("-m", "-c")):
            return None
        if option in ("-W", "-X") and rest:
            rest.pop(0)
    return Path(rest[0]) if rest and Path(rest[0]).is_file() else None


def wants_ranks(source: str) -> bool:
    """Whether a script expects a launcher: it reads rank variables or joins a group, and spawns nothing itself."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return False
    expects = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in _RANK_NAMES:
            expects = True
        elif isinstance(node, ast.Call):
            owner, name = _called(node.func)
            if name in _SPAWNING_CALLS and (name != "spawn" or owner.endswith(_SPAWNING_MODULES)):
                return False
            expects = expects or name in _GROUP_CALLS
    return expects


def _called(function: ast.expr) -> tuple[str, str]:
    if isinstance(function, ast.Attribute):
        return ast.unparse(function.value), function.attr
    return "", function.id if isinstance(function, ast.Name) else ""


def run_simulated(
    command: Sequence[str], devices: int, launch: str, simulation: Mapping[str, str], write: WriteLine
) -> SimulateResult:
    """Run the command to its end. Ctrl-C and SIGTERM are passed on; no process is left behind.

    Raises:
        UserError: S107 no command, or a program that is not there; S109 a script that is not there.
    """
    words = resolve(command)
    env = {**os.environ, **simulation}
    # `python` and `torchrun` mean those of this environment, which has unisono and its torch.
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env.get("PATH", os.defpath)])
    if launch == "once":
        return SimulateResult(_exit_code(_run_alone(words, env)))
    return _run_each(words, devices, env, write)


def resolve(command: Sequence[str]) -> list[str]:
    """The command with its program found.

    Raises:
        UserError: S107 no command, or a program that is not there; S109 a script that is not there.
    """
    if not command:
        raise UserError(
            "S107",
            "no command to simulate",
            "the command stands after --",
            "write for example: unisono simulate --devices 8 -- python train.py",
        )
    words = list(command)
    if words[0].endswith(".py") and not os.access(words[0], os.X_OK):
        words.insert(0, "python")
    if Path(words[0]).name in _PYTHONS and os.sep not in words[0]:
        words[0] = sys.executable
    beside = Path(sys.executable).parent / words[0]
    if shutil.which(words[0]) is None and not beside.is_file():
        raise UserError("S107", f"{words[0]} is not a program here", "it is neither a file nor on the PATH", "check its name")
    if words[0] == sys.executable and len(words) > 1 and words[1].endswith(".py") and not Path(words[1]).is_file():
        raise UserError("S109", f"no script {words[1]}", f"looked in {Path.cwd()}", "check the path")
    return words


def _run_alone(words: list[str], env: dict[str, str]) -> int:
    process = subprocess.Popen(words, env=env, preexec_fn=_die_with_parent)
    before = {number: signal.signal(number, lambda n, _: process.send_signal(n)) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        while True:
            with suppress(KeyboardInterrupt):  # the child has had its Ctrl-C from the terminal
                return process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run_each(words: list[str], devices: int, env: dict[str, str], write: WriteLine) -> SimulateResult:
    port = str(free_port())
    processes: list[subprocess.Popen[bytes]] = []
    pumps: list[threading.Thread] = []
    received: list[int] = []

    def stop(number: int, _: object) -> None:
        received.append(number)
        _signal_all(processes, number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        for rank in range(devices):
            process = subprocess.Popen(
                words,
                env={**env, **_rank_variables(rank, devices, port, env)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
            processes.append(process)
            for stream, is_error in ((process.stdout, False), (process.stderr, True)):
                assert stream is not None
                pumps.append(threading.Thread(target=_pump, args=(stream, f"rank{rank}: ", is_error, write), daemon=True))
                pumps[-1].start()
        failed, code = _wait_all(processes)
    finally:
        _end(processes)
        for pump in pumps:
            pump.join(timeout=_GRACE_S)
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        return SimulateResult(128 + received[0])
    return SimulateResult(code, failed)


def _rank_variables(rank: int, devices: int, port: str, env: Mapping[str, str]) -> dict[str, str]:
    """The variables that torchrun would set. One thread a process, as torchrun does, unless the user has chosen."""
    variables = {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(devices),
        "LOCAL_WORLD_SIZE": str(devices),
        "GROUP_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "PYTHONUNBUFFERED": "1",
    }
    if devices > 1 and "OMP_NUM_THREADS" not in env:
        variables["OMP_NUM_THREADS"] = "1"
    return variables


def _pump(stream: IO[bytes], prefix: str, is_error: bool, write: WriteLine) -> None:
    for line in iter(stream.readline, b""):
        write(prefix + line.decode(errors="replace").rstrip("\r\n"), is_error)


def _wait_all(processes: list[subprocess.Popen[bytes]]) -> tuple[int | None, int]:
    """Wait until all have ended well, or one has failed: its rank and exit code."""
    waiting = {process.pid: rank for rank, process in enumerate(processes)}
    while waiting:
        pid, status = os.wait()
        if pid not in waiting:
            continue
        rank = waiting.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        processes[rank].returncode = code
        if code != 0:
            return rank, _exit_code(code)
    return None, 0


def _exit_code(code: int) -> int:
    return 128 - code if code < 0 else code


def _signal_all(processes: list[subprocess.Popen[bytes]], number: int) -> None:
    for process in processes:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """End what still runs: SIGTERM to each rank's whole group, and SIGKILL for those that do not heed it."""
    _signal_all(processes, signal.SIGTERM)
    timer = threading.Timer(_GRACE_S, _signal_all, (processes, signal.SIGKILL))
    timer.start()
    for process in processes:
        process.wait()
    timer.cancel()


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
