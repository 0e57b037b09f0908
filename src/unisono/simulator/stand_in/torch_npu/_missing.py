"""Names that the real torch_npu has and the stand-in lacks: each says so, and none is an AttributeError.

Functions, operators and classes can be fetched and imported, as in the real package, and raise when they are used. Modules and
values raise when they are asked for. A name that the real package lacks too stays an AttributeError.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.resources
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NoReturn


class NotSimulatedError(RuntimeError):
    """The real torch_npu has this; the simulated NPU does not."""

    def __init__(self, name: str) -> None:
        super().__init__(f"not simulated: {name}")


class ModuleNotSimulatedError(NotSimulatedError, ImportError):
    """The same for a module, where callers expect an ImportError."""


@functools.cache
def real_names() -> dict[str, tuple[str, str]]:
    """Kind and signature of every known name of the real package. `torch.npu.` is spelled `torch_npu.npu.` here."""
    text = importlib.resources.files("unisono.simulator").joinpath("names.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines()[1:])
    return {canonical(name): (kind, signature) for name, kind, signature in rows}


def canonical(name: str) -> str:
    """torch.npu.X and torch_npu.npu.X are one object."""
    return "torch_npu.npu" + name.removeprefix("torch.npu") if name.startswith("torch.npu") else name


def _raise(name: str, *_: Any, **__: Any) -> NoReturn:
    raise NotSimulatedError(name)


def stand_for(name: str, kind: str) -> Any:
    """What to hand out for a name of the real package that is not simulated."""
    if kind == "class":
        return type(name.rpartition(".")[2], (), {"__init__": functools.partialmethod(_refuse, name), "is_simulated": False})
    if kind in ("function", "op", "method"):
        return functools.partial(_raise, name)
    if kind == "module":
        raise ModuleNotSimulatedError(name)
    raise NotSimulatedError(name)


def _refuse(_instance: object, name: str, *_: Any, **__: Any) -> NoReturn:
    raise NotSimulatedError(name)


def missing_names(module: str) -> Callable[[str], Any]:
    """A module-level `__getattr__` for `module`."""

    def getattr_missing(name: str) -> Any:
        full = canonical(f"{module}.{name}")
        known = real_names().get(full)
        if known is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return stand_for(full, known[0])

    return getattr_missing


class _MissingModules(importlib.abc.MetaPathFinder):
    """Last in line: `import torch_npu.dynamo` says what is missing instead of "no module named"."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.startswith(("torch_npu.", "torch.npu.")) and real_names().get(canonical(fullname), ("",))[0] == "module":
            raise ModuleNotSimulatedError(fullname)
        return None


def report_missing_modules() -> None:
    """Put the finder in place, once."""
    if not any(isinstance(finder, _MissingModules) for finder in sys.meta_path):
        sys.meta_path.append(_MissingModules())


def also_known_as(module: str, *parts: str) -> None:
    """Modules of the real package whose content lies in one file here: `module.part` is `module`."""
    for part in parts:
        sys.modules.setdefault(f"{module}.{part}", sys.modules[module])
        setattr(sys.modules[module], part, sys.modules[module])
