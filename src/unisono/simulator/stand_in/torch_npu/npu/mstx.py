"""Marks and ranges for the vendor's profiler. Nested ranges are counted, since a script may ask for the depth; nobody records them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class mstx:  # the vendor's name
    """Static calls, as torch_npu has them."""

    _depth = 0
    _numbers = itertools.count(1)

    @staticmethod
    def mark(message: str = "", stream: Any = None, domain: str = "default") -> None:
        """A moment. Nothing is recorded here."""

    @staticmethod
    def range_start(message: str, stream: Any = None, domain: str = "default") -> int:
        """Begin a range; the number ends it."""
        return next(mstx._numbers)

    @staticmethod
    def range_end(range_id: int, domain: str = "default") -> None:
        """End a range by its number."""

    @staticmethod
    def range_push(message: str, stream: Any = None, domain: str = "default") -> int:
        """Begin a nested range; gives its depth from 0."""
        mstx._depth += 1
        return mstx._depth - 1

    @staticmethod
    def range_pop(domain: str = "default") -> int:
        """End the innermost range; gives the depth that is left."""
        mstx._depth = max(0, mstx._depth - 1)
        return mstx._depth

    @staticmethod
    @contextmanager
    def mstx_range(message: str, stream: Any = None, domain: str = "default") -> Iterator[None]:
        """A range around a `with` or, as a decorator, a function."""
        number = mstx.range_start(message, stream, domain)
        try:
            yield
        finally:
            mstx.range_end(number, domain)
