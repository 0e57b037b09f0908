"""What migrated code relies on, written once behind the imports: torch_npu, or the portable target's constants."""

from __future__ import annotations

from typing import Any

import libcst as cst
from libcst.helpers import get_full_name_for_node

from unisono.migrate.edits import Edit, Span
from unisono.migrate.rules.base import Draft
from unisono.migrate.rules.shared import ACCELERATOR, COLLECTIVE_BACKEND, DEVICE_FUNCTION, GRAD_SCALER

OWNER = -2
"""Owner number of the edits made here; they belong to no finding."""


def preamble_edits(draft: Draft) -> list[Edit]:
    """Insertions that make the definitions available which the other edits use."""
    view, needs = draft.view, set(draft.preamble)
    body = list(view.module.body)
    edits: list[Edit] = []
    first, last = _torch_import(draft, body), _end_of_imports(draft, body)
    imports: list[str] = []
    if "os" in needs and view.local_name_of("os") is None:
        imports.append("import os")
    definitions = [text for name, text in _definitions(draft).items() if name in needs and not _defined(draft, name)]
    if view.local_name_of("torch") is None and (definitions or "torch" in needs) and "import torch\n" not in view.text:
        imports.append("import torch")
    if imports:
        edits.append(_insert(draft, _before_first_import(draft, body), imports))
    if definitions and last is None:
        edits.append(_insert(draft, _top(draft, body), [*definitions, ""]))
    elif definitions:
        edits.append(
            _insert(
                draft,
                view.span(last).end,
                definitions,
                after=True,
                blank=True,
            )
        )
    if "torch_npu" in needs and not _imports_torch_npu(draft):
        statement, before = first
        if statement is None:
            edits.append(_insert(draft, _before_first_import(draft, body), ["import torch_npu"]))
        elif before:
            edits.append(_insert(draft, view.span(statement).start, ["import torch_npu"]))
        else:
            edits.append(_insert(draft, view.span(statement).end, ["import torch_npu"], after=True))
    return edits


def _definitions(draft: Draft) -> dict[str, str]:
    torch, newline, indent = draft.state["torch"], draft.view.newline, draft.view.indent
    device = ACCELERATOR if draft.portable else '"npu"'
    function = newline.join(
        (
            "",
            "",
            f"def {DEVICE_FUNCTION}(index=None):",
            f'{indent}"""The accelerator with this index (the current one by default), or the CPU where there is none."""',
            f"{indent}if isinstance(index, (str, {torch}.device)):",
            f"{indent}{indent}return {torch}.device(index)",
            f'{indent}if index is None or {ACCELERATOR} == "cpu":',
            f"{indent}{indent}return {torch}.device({ACCELERATOR})",
            f"{indent}return {torch}.device({ACCELERATOR}, index)",
        )
    )
    return {
        ACCELERATOR: f'{ACCELERATOR} = {torch}.accelerator.current_accelerator().type if {torch}.accelerator.is_available() else "cpu"',
        COLLECTIVE_BACKEND: f"{COLLECTIVE_BACKEND} = {torch}.distributed.get_default_backend_for_device({ACCELERATOR})",
        GRAD_SCALER: f"{GRAD_SCALER} = {torch}.amp.GradScaler({device}, enabled=False)",
        DEVICE_FUNCTION: function,
    }


def _defined(draft: Draft, name: str) -> bool:
    return any(line.startswith((f"{name} =", f"def {name}(")) for line in draft.view.text.splitlines())


def _imports_torch_npu(draft: Draft) -> bool:
    return any(
        isinstance(node, cst.ImportAlias) and (get_full_name_for_node(node.name) or "").split(".")[0] == "torch_npu"
        for node in draft.view.nodes
    )


def _imported(statement: Any) -> list[str]:
    if not isinstance(statement, cst.SimpleStatementLine):
        return []
    found: list[str] = []
    for small in statement.body:
        if isinstance(small, cst.Import):
            found += [get_full_name_for_node(alias.name) or "" for alias in small.names]
        elif isinstance(small, cst.ImportFrom) and small.module is not None and not small.relative:
            found.append(get_full_name_for_node(small.module) or "")
            if not isinstance(small.names, cst.ImportStar):
                found += [f"{found[-1]}.{alias.name.value}" for alias in small.names]
    return found


def _torch_import(draft: Draft, body: list[Any]) -> tuple[Any, bool]:
    """The first import of torch at module level, and whether torch_npu has to come before it.

    `from torch.npu import ...` works only once torch_npu has been imported.
    """
    for statement in body:
        names = _imported(statement)
        if any(name == "torch" or name.startswith("torch.") for name in names):
            return statement, any(name == "torch.cuda" or name.startswith("torch.cuda.") for name in names)
    return None, False


def _end_of_imports(draft: Draft, body: list[Any]) -> Any:
    """The last statement of the leading imports, reaching at least to the first import of torch."""
    torch, _ = _torch_import(draft, body)
    last = None
    seen_torch = torch is None
    for index, statement in enumerate(body):
        importing = bool(_imported(statement)) or _only_imports(statement)
        if importing:
            last = statement
            seen_torch = seen_torch or statement is torch
        elif not (index == 0 and _is_docstring(statement)) and seen_torch:
            break
    return last


def _only_imports(statement: Any) -> bool:
    """True for `try:` and `if` around imports."""
    if isinstance(statement, cst.Try):
        return any(_imported(inner) for inner in statement.body.body)
    if isinstance(statement, cst.If) and isinstance(statement.body, cst.IndentedBlock):
        return any(_imported(inner) for inner in statement.body.body)
    return False


def _is_docstring(statement: Any) -> bool:
    return (
        isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], cst.Expr)
        and isinstance(statement.body[0].value, cst.SimpleString | cst.ConcatenatedString)
    )


def _before_first_import(draft: Draft, body: list[Any]) -> int:
    for statement in body:
        names = _imported(statement)
        if names and "__future__" not in names:
            return draft.view.span(statement).start
    return _top(draft, body)


def _top(draft: Draft, body: list[Any]) -> int:
    """The start of the first statement that is neither docstring nor __future__ import."""
    for index, statement in enumerate(body):
        if (index == 0 and _is_docstring(statement)) or "__future__" in _imported(statement):
            continue
        return draft.view.span(statement).start
    return len(draft.view.bytes)


def _insert(draft: Draft, offset: int, lines: list[str], *, after: bool = False, blank: bool = False) -> Edit:
    newline = draft.view.newline
    if not after:
        return Edit(Span(offset, offset), ("".join(line + newline for line in lines),), OWNER)
    end = draft.view.bytes.find(b"\n", offset)
    if end < 0:
        return Edit(Span(len(draft.view.bytes), len(draft.view.bytes)), (newline + newline.join(lines),), OWNER)
    rest = draft.view.bytes[end + 1 : end + 3]
    followed = not rest or rest.startswith((b"\n", b"\r"))
    text = (
        (newline if blank else "")
        + "".join(line + newline for line in lines)
        + ("" if followed or not blank else newline)
    )
    return Edit(Span(end + 1, end + 1), (text,), OWNER)
