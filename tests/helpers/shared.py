"""Where the project's shared facts and real data lie, when they stand beside the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest


def shared_dir() -> Path:
    """The folder of shared facts and data beside the checkout; skips the test where it is missing."""
    folder = Path(__file__).resolve().parents[3] / "shared"
    if not (folder / "data").is_dir():
        pytest.skip("needs the shared facts and data beside the checkout, and they are not there")
    return folder
