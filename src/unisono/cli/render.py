"""The only place that prints. Everything else returns data."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from typing import Any, TextIO

from unisono.errors import UserError

_WRITING = threading.Lock()


def line(text: str = "") -> None:
    """One plain line on standard output, flushed, so that logs and pipes see it at once."""
    _write(sys.stdout, text)


def note(text: str) -> None:
    """One plain line on standard error: progress and remarks that a pipe must not carry."""
    _write(sys.stderr, text)


def as_json(value: Mapping[str, Any] | list[Any]) -> None:
    """One JSON document on standard output."""
    line(json.dumps(value, ensure_ascii=False, indent=2))


def user_error(error: UserError) -> None:
    """The four short lines of a `UserError`, on standard error."""
    note(f"error {error.code}: {error.what}")
    note(f"  why: {error.why}")
    note(f"  fix: {error.fix}")
    note(f"  more: docs/errors.md#{error.code.lower()}")


def _write(stream: TextIO, text: str) -> None:
    """The line and its end in one go: `print` writes them apart, and lines of ranks told by several threads would tear."""
    with _WRITING:
        stream.write(text + "\n")
        stream.flush()
