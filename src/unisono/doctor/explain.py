"""Why a run died. Takes a code, a text, a log, or a folder of logs of many ranks and nodes; needs no torch."""

from __future__ import annotations

import gzip
import io
import json
import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from unisono.doctor.explain_judge import conclude, judge
from unisono.doctor.explain_result import Consequence, Explanation, note
from unisono.doctor.knowledge import PROCESS_ENDED, PROGRAM_EXCEPTION, entries, entry_of, module_of
from unisono.doctor.logs import Event, Reading, read_log
from unisono.doctor.logs_owner import attempt_of, rank_and_node_of
from unisono.doctor.logs_scan import looks_binary, open_log
from unisono.errors import UserError, nearest_names

__all__ = [
    "Consequence",
    "Explanation",
    "explain_code",
    "explain_folder",
    "explain_path",
    "explain_stream",
    "explain_text",
]

LOG_SUFFIXES = frozenset({".log", ".txt", ".out", ".err", ".gz", ""})
# A run's own files that are no logs; and folders that hold none.
_NOT_LOGS = frozenset({"Makefile", "LICENSE", "README", "README.txt", "requirements.txt"})
_FOLDERS_PASSED_OVER = frozenset({".git", ".venv", "__pycache__", "checkpoints", "node_modules"})
_PROBE_BYTES = 4096
_RECORD = "failure.json, traceback"
"""How lines of the launcher's record are cited: they are counted within its traceback."""


def explain_code(code: str) -> Explanation:
    """What is known of one code.

    Raises:
        UserError: H201 an unknown code, with the nearest ones.
    """
    wanted = code.strip().strip("[]():,.").upper()
    found = entries().get(wanted)
    if found is not None:
        return Explanation(entry=found, phase=found.phase or None)
    near = nearest_names(wanted, entries())
    module = module_of(wanted)
    raise UserError(
        "H201",
        f"unknown code {code!r}",
        f"{len(entries())} codes are known, and this is none of them"
        + (f"; by its form it comes from {module}" if module else ""),
        f"did you mean {' or '.join(near)}?" if near else "give a code such as EI0006, 507048 or ERR02200, or a log",
    )


def explain_text(text: str | Iterable[str], name: str = "standard input") -> Explanation:
    """Explain a log given as text, or as lines."""
    whole = text if isinstance(text, str) else "\n".join(line.rstrip("\n") for line in text)
    return explain_stream(io.BytesIO(whole.encode("utf-8", "replace")), name)


def explain_stream(stream: BinaryIO, name: str = "standard input") -> Explanation:
    """Explain a log as it comes in, to its end."""
    return judge([read_log(stream, name)])


def explain_path(path: Path) -> Explanation:
    """Explain a log file or a folder of logs.

    Raises:
        UserError: H202 nothing there, H203 a folder without logs, H206 no text, H207 an empty file, H208 unreadable.
    """
    if path.is_dir():
        return explain_folder(path)
    if path.is_fifo():  # as in `unisono explain <(zcat log)`
        with open_log(path) as pipe:
            return explain_stream(pipe, path.name)
    if not path.is_file():
        raise UserError(
            "H202",
            f"no file or folder {path}",
            "there is nothing to read",
            "give a code, a log file, a folder of logs, or - for standard input",
        )
    if path.name == "failure.json" and _failure_record(path.parent) is not None:
        return explain_folder(path.parent)
    head = _head(path)
    if not head:
        raise UserError("H207", f"{path} is empty", "there is nothing to read", "give the log of the run that failed")
    if looks_binary(head):
        raise UserError(
            "H206",
            f"{path} is no text",
            "it looks like an archive, a checkpoint or an image",
            "give a log, or a folder of logs",
        )
    return judge([_read_file(path, path.parent, by_name=False)])


def explain_folder(path: Path) -> Explanation:
    """Explain the logs of many ranks and nodes; a run folder's own failure record decides who was first.

    Raises:
        UserError: H202 no such folder, H203 a folder without logs.
    """
    if not path.is_dir():
        raise UserError("H202", f"no folder {path}", "there is nothing to read", "give the folder of the run")
    readings, passed_over = [], 0
    for file in log_files(path):
        try:
            head = _head(file)
            if head and not looks_binary(head):
                readings.append(_read_file(file, path, by_name=True))
            else:
                passed_over += bool(head)
        except UserError:
            passed_over += 1
    record = _failure_record(path)
    if not readings and record is None:
        raise UserError(
            "H203",
            f"no logs in {path}",
            "looked for files with text that end in .log, .txt, .out, .err, .gz or without an ending",
            "give the folder that holds the ranks' logs",
        )
    found = _judge_record(record, readings) if record is not None else judge(readings)
    if passed_over:
        said = note(f"{passed_over} files are no text or may not be read", f"{passed_over} 个文件不是文本或无法读取")
        found = replace(found, notes=(*found.notes, said))
    return found


def log_files(folder: Path) -> list[Path]:
    """Every file below a folder that may be a log, sorted; plog folders included, links to folders not followed."""
    found = []
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts[:-1]
        if (
            path.suffix.lower() not in LOG_SUFFIXES
            or path.name in _NOT_LOGS
            or _FOLDERS_PASSED_OVER.intersection(inside)
        ):
            continue
        if path.is_file():
            found.append(path)
    return found


def _head(path: Path) -> bytes:
    with open_log(path) as file:
        try:
            return (
                file.read1(_PROBE_BYTES)
                if isinstance(file, (io.BufferedReader, gzip.GzipFile))
                else file.read(_PROBE_BYTES)
            )
        except (OSError, EOFError):
            # A damaged .gz is looked at as it is, which tells that it is no text.
            with open(path, "rb") as raw, suppress(OSError):
                return raw.read(_PROBE_BYTES)
    raise UserError("H208", f"cannot read {path}", "reading from it fails", "copy it, or give another log")


def _read_file(path: Path, root: Path, *, by_name: bool) -> Reading:
    rank, node = rank_and_node_of(path, root)
    name = path.relative_to(root).as_posix()
    if not by_name and "rank" not in path.name:
        rank = None
    with open_log(path) as stream:
        return read_log(stream, name, rank=rank, node=node, attempt=attempt_of(name))


def _failure_record(path: Path) -> dict[str, Any] | None:
    try:
        record = json.loads((path / "failure.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    usable = isinstance(record, dict) and type(record.get("rank")) is int
    return record if usable else None


def _judge_record(record: dict[str, Any], readings: list[Reading]) -> Explanation:
    """The launcher saw who died first; its record is read like a log of that rank, before all others."""
    rank = int(record["rank"])
    said = [str(record[part]) for part in ("traceback", "message") if record.get(part)][:1]
    signal = f"\nended by {record['signal']}" if record.get("signal") else ""
    own = read_log(io.BytesIO(("\n".join(said) + signal).encode("utf-8", "replace")), _RECORD, rank=rank)
    others = judge([*readings, own])
    causes = [e for e in own.events if e.kind in ("cause", "suspect")]
    if not causes:
        causes = [
            e for reading in readings for e in reading.events if e.rank == rank and e.kind in ("cause", "suspect")
        ]
    if not causes and (record.get("collateral") is True or own.events):
        return replace(others, phase=others.phase or _word(record, "phase"), step=_number(record, "step"))
    if not causes:
        text = str(record.get("message") or f"ended with exit code {record.get('exit_code')}").splitlines()
        kind = "generic" if record.get("exit_code") is not None else "cause"
        code = PROCESS_ENDED if kind == "generic" else PROGRAM_EXCEPTION
        causes = [Event(code, (text or [""])[0][:400], f"{_RECORD}:1", rank, None, None, 1, entry_of(code).kind)]
    specific = [e for e in causes if e.code not in (PROGRAM_EXCEPTION, PROCESS_ENDED)]
    telling = (specific or causes)[0]
    failures = [e for reading in readings for e in reading.events if e.kind != "note"]
    when = record.get("time")
    found = conclude(telling, causes[:3], failures, readings, list(others.notes))
    return replace(
        found,
        first_rank=rank,
        phase=_word(record, "phase") or found.phase,
        step=_number(record, "step"),
        time=float(when) if isinstance(when, (int, float)) and math.isfinite(when) and 0 < when < 1e11 else found.time,
        others=tuple(other for other in found.others if not other.endswith(f"(rank {rank})")),
    )


def _word(record: dict[str, Any], key: str) -> str | None:
    return str(record[key]) if isinstance(record.get(key), str) and record[key] else None


def _number(record: dict[str, Any], key: str) -> int | None:
    return record[key] if type(record.get(key)) is int else None
