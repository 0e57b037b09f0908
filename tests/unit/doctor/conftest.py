"""Stand-ins for the vendors' tools: small executables that print what they are told, alone on PATH."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

Tool = Callable[..., Path]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """`tool(name, text, code=0)` puts an executable of that name on PATH; `when` maps a part of its arguments to a text."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def make(name: str, text: str = "", code: int = 0, when: dict[str, str] | None = None) -> Path:
        path = folder / name
        cases = "".join(
            f"*{shlex.quote(part)}*) printf '%s\\n' {shlex.quote(answer)} ;;\n" for part, answer in (when or {}).items()
        )
        path.write_text(
            f"#!/bin/sh\ncase \"$*\" in\n{cases}*) printf '%s\\n' {shlex.quote(text)} ;;\nesac\nexit {code}\n"
        )
        path.chmod(0o755)
        return path

    return make
