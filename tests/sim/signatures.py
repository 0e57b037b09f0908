"""Names and signatures of the real `torch_npu`, as JSON on the last line; run by tests/sim/test_real_torch_npu.py.

    python tests/sim/signatures.py TABLE            names.tsv, whose names are looked up
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any


def look_up(name: str) -> Any:
    """The object of a dotted name; LookupError where it is not."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except (ImportError, AttributeError, RuntimeError):
            continue
        for part in parts[length:]:
            try:
                found = getattr(found, part)
            except (AttributeError, RuntimeError) as error:
                raise LookupError(name) from error
        return found
    raise LookupError(name)


def parameters(found: Any) -> list[str] | None:
    """Each parameter as `name` or `name=`, with its stars; None where there is no signature to be had."""
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return None
    return [spelled(parameter) for parameter in signature.parameters.values()]


def spelled(parameter: inspect.Parameter) -> str:
    """A parameter without its annotation and value."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    return stars + parameter.name + ("=" if parameter.default is not inspect.Parameter.empty else "")


def main() -> None:
    """Print a JSON object: name to parameters, or to null."""
    importlib.import_module("torch")
    importlib.import_module("torch_npu")
    found = {}
    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()[1:]:
        name, kind, _ = line.split("\t")
        try:
            thing = look_up(name)
        except LookupError:
            continue
        found[name] = parameters(thing) if kind in ("function", "class", "method") else None
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
