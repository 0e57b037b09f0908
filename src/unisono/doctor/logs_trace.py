"""What stretches over several lines: Python's tracebacks, and the summary that torch's elastic agent prints at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from unisono.doctor.logs_clock import time_of
from unisono.doctor.logs_owner import ANSI, split_prefix

_EXCEPTION = re.compile(r"(?:[+|]\s*)?((?:[A-Za-z_]\w*\.)*[A-Z_]\w*)(?::\s?(.*))?$")
_STAMPED = re.compile(r"\[?[IWEFD]\d{4} |\d{4}-\d\d-\d\d|\[W |Traceback \(most recent")
_LINES = 400
_SUMMARY_LINES = 14
_FIELD = re.compile(r"\b(time|host|rank|exitcode|traceback)\s*:\s*(.*)")
_FRAME = re.compile(r'\s*File "([^"]+)", line (\d+), in (\S+)')
_INSTALLED = re.compile(r"site-packages|dist-packages|/lib/python\d|^<frozen ")
# The fields of the summary are read as one under "Root Cause"; those of the other failures follow from it.
SUMMARY_FIELD = re.compile(rb"\s*(?:exitcode|traceback|error_file)\s+: ")
_AT_ONCE = re.compile(r"exitcode: (-?\d+)\) local_rank: (\d+)")

# Names in the code of a frame, and the phase of a step they belong to; the innermost frame that tells decides.
_PHASES = (
    ("save", re.compile(r"torch\.save|save_checkpoint|serialization\.py.*save|\bin save\b")),
    ("start", re.compile(r"init_process_group|rendezvous|_create_c10d_store|TCPStore\(|set_device|<frozen importlib|^\s*(?:import|from) ")),
    ("data", re.compile(r"dataloader\.py|data_loader|__getitem__|_next_data|torchvision/datasets|PIL/")),
    ("evaluate", re.compile(r"\bin (?:evaluate|validate|validation|test_epoch|eval_epoch)\b")),
    ("backward", re.compile(r"\.backward\(|in backward|autograd/")),
    ("update", re.compile(r"optimizer\.step|optim/|in step\b")),
    ("reduce", re.compile(r"all_reduce|all_gather|reduce_scatter|broadcast\(|barrier\(|distributed_c10d\.py")),
    ("forward", re.compile(r"in forward\b|_call_impl")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trace:
    """One traceback."""

    exception: str
    """Type and first line of its message."""
    at: int
    """Where that line starts in the block; where the traceback starts when it is cut."""
    frame: str
    """The innermost frame of the program itself as file:line, else of a library; empty when there is none."""
    phase: str
    message: tuple[str, ...]
    """The exception's line and those of its message that follow."""


@dataclass(frozen=True, slots=True)
class RootCause:
    """The process that torch's elastic agent saw end first on its machine."""

    rank: int | None
    host: str | None
    exit_code: int | None
    time: float | None
    text: str


def read_trace(data: bytes, start: int) -> Trace | None:
    """The traceback that begins in the line at `start`; None when its end is missing.

    Lines of other ranks between its own are passed over, by their prefixes.
    """
    own: str | None = None
    frames: list[str] = []
    message: list[str] = []
    exception_at = start
    for offset, text in _lines(data, start, _LINES):
        _, prefix, rest = split_prefix(text)
        if own is None:
            own = prefix
            continue
        if prefix != own:
            continue
        if message:
            if len(message) > 15 or not rest.strip() or _STAMPED.match(rest):
                break
            message.append(rest.strip())
        elif rest[:1].isspace() or not rest:
            frames.append(rest)
        elif (match := _EXCEPTION.match(rest.strip())) is not None:
            message.append(rest.strip())
            exception_at = offset
        elif _STAMPED.match(rest):
            break
    if not message:
        return None
    files = [match for frame in frames if (match := _FRAME.match(frame))]
    # The reader can change the innermost frame that is no installed library's.
    own_files = [match for match in files if not _INSTALLED.search(match[1])] or files
    where = f"{own_files[-1][1]}:{own_files[-1][2]} in {own_files[-1][3]}" if own_files else ""
    return Trace(message[0], exception_at, where, _phase_of(frames), tuple(message))


def read_root_cause(data: bytes, start: int) -> RootCause | None:
    """The fields under `Root Cause (first observed failure):`."""
    fields: dict[str, str] = {}
    for _, text in _lines(data, start, _SUMMARY_LINES):
        match = _FIELD.search(text)
        if match is not None:
            fields.setdefault(match[1], match[2].strip())
    if "exitcode" not in fields:
        return None
    rank, code = re.match(r"\d{1,6}", fields.get("rank", "")), re.match(r"-?\d{1,6}", fields["exitcode"])
    return RootCause(
        int(rank[0]) if rank else None,
        fields.get("host") or None,
        int(code[0]) if code else None,
        time_of(fields.get("time", "")),
        " ".join(f"{name} {fields[name]}" for name in ("rank", "exitcode", "traceback") if name in fields),
    )


def ended_process(text: str) -> tuple[int, int] | None:
    """(exit code, local rank) in the agent's line on the first process that ended."""
    match = _AT_ONCE.search(text)
    return (int(match[1]), int(match[2])) if match else None


def _phase_of(frames: list[str]) -> str:
    for frame in reversed(frames):
        for phase, regex in _PHASES:
            if regex.search(frame):
                return phase
    return ""


def _lines(data: bytes, start: int, most: int) -> Iterator[tuple[int, str]]:
    for _ in range(most):
        if start >= len(data):
            return
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        raw = data[start : min(end, start + 2000)]
        text = raw.decode("utf-8", "replace").rstrip("\r")
        yield start, ANSI.sub("", text) if "\x1b" in text else text
        start = end + 1
