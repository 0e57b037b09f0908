"""Reading and writing source files without changing what was not asked for."""

from __future__ import annotations

import io
import os
import tempfile
import tokenize
from pathlib import Path

BYTE_ORDER_MARK = "\ufeff"


def read_source(path: Path) -> tuple[str, str]:
    """(text, encoding) of a Python file, by its coding comment or byte order mark; newlines are kept as they are.

    Raises SyntaxError for an unknown or wrong encoding, OSError when it cannot be read.
    """
    return decode_source(path.read_bytes())


def decode_source(raw: bytes) -> tuple[str, str]:
    """(text, encoding) of the bytes of a Python file. The byte order mark, where there is one, stays in the text."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
    if encoding == "utf-8-sig":
        encoding = "utf-8"
    try:
        return raw.decode(encoding), encoding
    except UnicodeDecodeError as error:
        raise SyntaxError(f"the bytes are not {encoding}: {error.reason} at byte {error.start}") from error


def write_atomically(path: Path, text: str, encoding: str) -> None:
    """Replace the file in one step, keeping its mode bits; a reader sees the old file or the new one, never a part.

    A link is followed, so that it stays a link. Raises OSError when the folder cannot be written to.
    """
    path = path.resolve()
    data = text.encode(encoding)
    mode = path.stat().st_mode if path.exists() else None
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(name, mode & 0o7777)
        else:
            os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
