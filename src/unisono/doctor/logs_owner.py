"""Whose line it is: rank and node by the file's name and folders, by prefixes, and by what the line itself says."""

from __future__ import annotations

import re
from pathlib import Path

ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07)")
# torchrun's --tee and torch's own prefixes, srun -l, mpirun's --tag-output, the simulator's.
_PREFIX = re.compile(
    r"\s*(?:\[(?:rank|Rank |default|trainer|worker)(\d{1,6})\]\s?:?|\[(\d{1,4})\]:|rank\s?(\d{1,6}):"
    r"|\[\d+,(\d{1,6})\]<std\w+>:?|(\d{1,4}):(?=\s))\s?"
)
_INSIDE = re.compile(r"\[rank\s?(\d{1,6})\]|\bRankID:(\d{1,6})|\b[Rr]ank[ =:\[](\d{1,6})\b")
_FILE = re.compile(
    r"rank[_-]?(\d{1,6})"
    r"|(?:^|/)(\d{1,6})/(?:stdout|stderr|error)\.(?:log|json)$"
    r"|(?:^|/|(?<!\d)[_-])(\d{1,5})(?:[_.](?:stdout|stderr|out|err))?(?:\.(?:log|txt|out|err))?(?:\.gz)?$"
)
_NODE = re.compile(
    r"(?:^|/)(?:node|host|server|machine)[_-]?([\w.-]+?)(?:/|\.log|$)|(?:^|/)(\d{1,3}(?:\.\d{1,3}){3})(?:/|_|$)"
)
_PLOG = re.compile(r"plog-(\d+)_")
_ATTEMPT = re.compile(r"(?:^|/)attempt_(\d+)(?:/|$)")
_PID_RANK = re.compile(r"PID:\s?(\d+), Device:-?\d+, RankID:(\d+)")
_PID = re.compile(r"\[?PID:\s?(\d+)|\]\s?\w+\((\d+),\w")


def rank_and_node_of(path: Path, root: Path) -> tuple[int | None, str | None]:
    """Whose log a file is, by its name and folders below `root`."""
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    rank = None if _PLOG.search(name) else _FILE.search(name)
    node = _NODE.search(name)
    return (
        int(next(group for group in rank.groups() if group is not None)) if rank else None,
        next(group for group in node.groups() if group is not None) if node else None,
    )


def attempt_of(name: str) -> int | None:
    """Which life of the job a file belongs to, where its folders say so."""
    match = _ATTEMPT.search(name)
    return int(match[1]) if match else None


def process_of(name: str, text: str) -> int | None:
    """The process that wrote a line of plog or a report of CANN."""
    match = _PLOG.search(name) or _PID.search(text)
    return int(next(group for group in match.groups() if group is not None)) if match else None


def process_and_rank_in(text: str) -> tuple[int, int] | None:
    """torch_npu says which process is which rank: `(PID:7277, Device:0, RankID:3)`."""
    match = _PID_RANK.search(text)
    return (int(match[1]), int(match[2])) if match else None


def split_prefix(text: str) -> tuple[int | None, str, str]:
    """(rank of the prefix, the prefix, the rest) of a line; prefixes may be nested."""
    rank: int | None = None
    end = 0
    for _ in range(3):
        match = _PREFIX.match(text, end)
        if match is None:
            break
        if rank is None:
            rank = int(next(group for group in match.groups() if group is not None))
        end = match.end()
    return rank, text[:end], text[end:]


def rank_inside(text: str) -> int | None:
    """A rank that a line names without a prefix."""
    match = _INSIDE.search(text)
    return int(next(group for group in match.groups() if group is not None)) if match else None
