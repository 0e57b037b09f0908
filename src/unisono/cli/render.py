"""The only place that prints. Everything else returns data."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from unisono.errors import UserError


def line(text: str = "") -> None:
    """One plain line on standard output, flushed, so that logs and pipes see it at once."""
    print(text, flush=True)


def note(text: str) -> None:
    """One plain line on standard error: progress and remarks that a pipe must not carry."""
    print(text, file=sys.stderr, flush=True)


def as_json(value: Mapping[str, Any] | list[Any]) -> None:
    """One JSON document on standard output."""
    print(json.dumps(value, ensure_ascii=False, indent=2), flush=True)


def user_error(error: UserError) -> None:
    """The four short lines of a `UserError`, on standard error."""
    note(f"error {error.code}: {error.what}")
    note(f"  why: {error.why}")
    note(f"  fix: {error.fix}")
    note(f"  more: docs/errors.md#{error.code.lower()}")
