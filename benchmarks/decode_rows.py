"""The decoding row: decode.py's measurement as a line of the table."""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path

import decode
from loops import make_photographs
from record import Row


def decode_rows(photographs: Path | None, *, pairs: int, quick: bool) -> tuple[list[Row], list[str]]:
    """Random resized crops to 224 of JPEG photographs (a folder, or a tar of them), one core.

    The spread is that of single photographs, from the tenth to the ninetieth percentile.
    """
    said = []
    with tempfile.TemporaryDirectory() as unpacked:
        folder = photographs
        if folder is None:
            folder = make_photographs(Path(unpacked), images=4 if quick else 32)
            said.append("Photographs were made from nothing, for no folder of real ones was given.")
        elif folder.is_file():
            folder = _unpack(folder, Path(unpacked))
        answer = decode.measure(folder, pairs, most=4 if quick else 60)
    low, middle, high = answer.ratio_of_photographs
    row = Row(
        work=f"random resized crop to 224 of {answer.photographs} photographs, one core",
        against="torchvision's transforms over PIL",
        ours=answer.ours_ms,
        theirs=answer.torchvision_ms,
        unit="ms",
        ratio=answer.ratio,
        spread=(high - low) / middle,
        pairs=answer.photographs,
        least=2.5,
        note=f"The same boxes; pixels differ by {answer.mean_difference:.2f} of 255 in the mean. Reading the whole entropy code "
        f"alone takes {answer.entropy_ms:.2f} ms; stacked and normalised batches: {answer.end_to_end_ratio:.2f}.",
    )
    return [row], said


def _unpack(photographs: Path, folder: Path) -> Path:
    with tarfile.open(photographs) as tar:
        for member in (m for m in tar.getmembers() if m.name.lower().endswith((".jpg", ".jpeg"))):
            file = tar.extractfile(member)
            if file is not None:
                (folder / Path(member.name).name).write_bytes(file.read())
    return folder
