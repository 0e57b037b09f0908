"""JPEG photographs to pixels without Pillow's copies, and no further down than the crop reaches.

Most of a JPEG's decoding time is its entropy code, which has to be read from the top. What lies below a crop need not be
read at all: a copy of the file whose header states fewer lines ends there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

try:
    import simplejpeg
except ImportError:  # a platform without its wheels; Pillow decodes there, and `has_fast_decoder` says so
    simplejpeg = None

_ORIENTATION = 0x0112
_BASELINE, _EXTENDED, _PROGRESSIVE = 0xC0, 0xC1, 0xC2
# Chroma is interpolated from the lines around, and blocks are up to 16 lines high.
_LINES_BELOW, _BLOCK_LINES = 8, 16


@dataclass(frozen=True, slots=True)
class Frame:
    """What a JPEG's header says of its picture. Source of the format: ITU-T T.81, annex B."""

    width: int
    height: int
    height_at: int
    """Where the two bytes of the height are."""
    sequential: bool
    """Lines are coded from the top in one scan, so that the file may end early."""


def has_fast_decoder() -> bool:
    """False where simplejpeg is missing, and Pillow decodes everything."""
    return simplejpeg is not None


def upright_frame(data: bytes) -> Frame | None:
    """The frame of a whole, upright, 8-bit grey or colour JPEG; None for all that Pillow should see to."""
    if simplejpeg is None or data[:2] != b"\xff\xd8" or not _ends_whole(data):
        return None
    at, frame, turned = 2, None, False
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if marker == 0xE1 and data[at + 4 : at + 10] == b"Exif\0\0":
            turned = _is_turned(data[at + 4 : at + 2 + length])
        elif marker in (_BASELINE, _EXTENDED, _PROGRESSIVE):
            frame = _frame(data, at, length)
        elif marker == 0xDA:
            return None if turned or frame is None else _with_scan(frame, data, at)
        at += 2 + length
    return None


def decode(data: bytes | bytearray, frame: Frame, *, bottom: int, factor: int) -> NDArray[np.uint8] | None:
    """RGB pixels, [lines, width, 3], at 1/factor of the size and at least down to line `bottom`; None when damaged."""
    lines, strict = min(frame.height, -(-(bottom + _LINES_BELOW) // _BLOCK_LINES) * _BLOCK_LINES), True
    if frame.sequential and lines < frame.height:
        shorter = bytearray(data)
        shorter[frame.height_at : frame.height_at + 2] = lines.to_bytes(2, "big")
        # The bytes left over count as damage to a strict reader. Pillow reads over damage inside a picture, too.
        data, strict = shorter, False
    else:
        lines = frame.height
    options: dict[str, Any] = {}
    if factor > 1:
        least = {"min_height": -(-lines // factor), "min_width": -(-frame.width // factor)}
        options = {"min_factor": float(factor), **least}
    try:
        pixels: NDArray[np.uint8] = simplejpeg.decode_jpeg(data, "RGB", strict=strict, **options)
    except ValueError:
        return None
    return pixels


def _ends_whole(data: bytes) -> bool:
    return data.endswith(b"\xff\xd9") or data[-64:].rstrip(b"\0\r\n").endswith(b"\xff\xd9")


def _frame(data: bytes, at: int, length: int) -> Frame | None:
    """Of the frame header at `at`: length, precision, height, width, components."""
    if length < 8 or at + 10 > len(data):
        return None
    precision, components = data[at + 4], data[at + 9]
    height, width = (int.from_bytes(data[at + i : at + i + 2], "big") for i in (5, 7))
    if precision != 8 or components not in (1, 3) or not width or not height:
        return None
    return Frame(width, height, at + 5, data[at + 1] != _PROGRESSIVE)


def _with_scan(frame: Frame, data: bytes, at: int) -> Frame:
    """A picture whose first scan holds one component of three goes on in further scans, and cannot end early."""
    components = data[frame.height_at + 4]
    whole = frame.sequential and data[at + 4] == components
    return Frame(frame.width, frame.height, frame.height_at, whole)


def _is_turned(exif: bytes) -> bool:
    parsed = Image.Exif()
    try:
        parsed.load(exif)
        return parsed.get(_ORIENTATION, 1) in range(2, 9)
    except Exception:  # damaged EXIF data raise nearly anything; Pillow's own rule decides
        return True
