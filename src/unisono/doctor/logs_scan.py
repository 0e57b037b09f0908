"""A log as blocks of whole lines, and in each block the few lines that may say something known. Streams; holds one block."""

from __future__ import annotations

import codecs
import functools
import gzip
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from unisono.doctor.knowledge import patterns
from unisono.errors import UserError

BLOCK_BYTES = 1 << 20
# A traceback that a block's end would cut is carried into the next block, up to this size.
_CARRY_BYTES = 1 << 16
# Of a longer line only the surroundings of what was found are read.
_WINDOW_BYTES = 4000
CANN_CODE = re.compile(rb"(?:E[A-Z0-9]\d{4}|ERR\d{5})")
TRACEBACK = b"Traceback (most recent call last)"
# What the returned numbers of ACL stand behind.
_NUMBER_SIGNS = (b"error code is ", b"rrorCode", b"etcode", b"ret[", b"ret=", b"esult = ")
_OTHER_SIGNS = (b"Traceback (most", b"exitcode", b"Root Cause", b"starts, attempt", b"error ")
# Shorter texts that stand in many of the needles: one search instead of several.
_SHARED = (
    b"rror", b"emory", b"SIG", b"ignal", b"CUD", b"cuda", b"annot ", b"ismatch", b"ollectives", b"rocess", b"oom", b"nvalid",
    b"xception", b"losed", b"eights", b"ompiled", b"onnection ", b"unused", b"NCCL", b"nccl", b"ASCEND_O", b"ASCEND_HOME", b"No ",
    b"must ", b"expected", b" file", b"no C", b"no N", b"no k", b"no s", b"not k", b"not b", b"not c",
)  # fmt: skip
ERROR_LOOKS = (b"rror", b"RROR", b"xception", b"ailed", b"FAIL", b"atal")
"""What a line that looks like an error holds."""


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a log."""

    data: bytes
    first_line: int
    """Number of its first line, from 1."""
    is_last: bool

    def line_number(self, at: int) -> int:
        """Number of the line that holds a position."""
        return self.first_line + self.data.count(b"\n", 0, at)


@functools.cache
def needles() -> tuple[bytes, ...]:
    """Texts of which one stands in every line that says something known by its words."""
    wanted = {needle.encode() for pattern in patterns() for needle in pattern.needles}
    wanted.update(_NUMBER_SIGNS, _OTHER_SIGNS)
    wanted = {next((shared for shared in _SHARED if shared in needle), needle) for needle in wanted}
    # A text that holds another one of these is found with it.
    return tuple(sorted(n for n in wanted if not any(other != n and other in n for other in wanted)))


def open_log(path: Path) -> BinaryIO:
    """A log file for reading bytes; rotated ones are unpacked.

    Raises:
        UserError: H208 a file that may not be read.
    """
    try:
        return gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")  # type: ignore[return-value]  # GzipFile reads bytes as a BinaryIO does
    except OSError as error:
        raise UserError(
            "H208", f"cannot read {path}", str(error.strerror or error), "change its permissions, or copy it"
        ) from None


def blocks(stream: BinaryIO) -> Iterator[Block]:
    """The stream, cut behind line ends; a file that is damaged half way ends there. UTF-16 (PowerShell) is read as well."""
    rest = b""
    line = 1
    decode = None
    # Of a packed log that is cut, read1 gives all that is there, where read gives nothing.
    read = getattr(stream, "read1", stream.read)
    while True:
        try:
            fresh = read(BLOCK_BYTES)
        except (OSError, EOFError, ValueError):  # a cut or broken .gz
            fresh = b""
        if decode is None:
            decode = _decoder(fresh)
        data = rest + decode(fresh, not fresh)
        if not fresh:
            if data:
                yield Block(data, line, True)
            return
        cut = _cut(data)
        if cut:
            yield Block(data[:cut], line, False)
            line += data.count(b"\n", 0, cut)
        rest = data[cut:]


def _decoder(first: bytes) -> Callable[[bytes, bool], bytes]:
    if first[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        return lambda raw, final: raw
    reader = codecs.getincrementaldecoder("utf-16")("replace")
    return lambda raw, final: reader.decode(raw, final).encode("utf-8", "replace")


def _cut(data: bytes) -> int:
    """Where to end a block: behind a line, before a traceback that may go on."""
    end = data.rfind(b"\n") + 1
    if end == 0:
        return len(data) if len(data) >= 2 * BLOCK_BYTES else 0
    begun = data.rfind(TRACEBACK, max(0, end - _CARRY_BYTES), end)
    return data.rfind(b"\n", 0, begun) + 1 if begun >= 0 else end


def held_needles(data: bytes) -> frozenset[bytes]:
    """Which needles a block holds."""
    return frozenset(needle for needle in needles() if needle in data)


def candidates(data: bytes) -> tuple[list[tuple[int, int]], frozenset[bytes] | None]:
    """(start, end) of the lines of a block that may say something known, in order; and which needles it holds.

    The latter is None where most lines hold one, so that the search was given up.
    """
    found: dict[int, int] = {}
    returns = b"\r" in data
    position = 0
    while (match := CANN_CODE.search(data, position)) is not None:
        start, end = line_around(data, match.start(), returns)
        found[start] = end
        position = max(end, match.end())
    lines = data.count(b"\n")
    held: set[bytes] = set()
    for needle in needles():
        if not returns and len(found) * 2 > lines and (every := _every_line(data)):
            return every, None
        at = data.find(needle)
        while at >= 0:
            held.add(needle)
            start, end = line_around(data, at, returns)
            found[start] = max(end, found.get(start, 0))
            at = data.find(needle, max(end, at + 1))
    return sorted(found.items()), frozenset(held)


def _every_line(data: bytes) -> list[tuple[int, int]]:
    """All lines of a block: where most may say something, looking for each text costs more. Empty when one is too long."""
    found = []
    start = 0
    for line in data.split(b"\n"):
        end = start + len(line)
        if len(line) > _WINDOW_BYTES:
            return []
        if line:
            found.append((start, end))
        start = end + 1
    return found


def line_around(data: bytes, at: int, returns: bool = True) -> tuple[int, int]:
    """(start, end) of the line that holds a position; a carriage return ends a line too (progress bars)."""
    low, high = max(0, at - _WINDOW_BYTES), min(len(data), at + _WINDOW_BYTES)
    start = data.rfind(b"\n", low, at) + 1
    end = data.find(b"\n", at, high)
    end = high if end < 0 else end
    if returns:
        start = max(start, data.rfind(b"\r", low, at) + 1)
        back = data.find(b"\r", at, end)
        end = end if back < 0 else back
    return max(start, low), end


def looks_binary(head: bytes) -> bool:
    """True for bytes that are no text: archives, checkpoints, images."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return False
    odd = sum(byte < 9 or 13 < byte < 27 or byte in (28, 29, 30, 31) for byte in head)
    return (b"\0" in head and odd * 20 > len(head)) or odd * 10 > max(1, len(head)) * 3
