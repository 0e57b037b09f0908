"""Taking import statements out, shared by the families that make an import superfluous."""

from __future__ import annotations

import builtins
from typing import Any

import libcst as cst
from libcst.helpers import get_full_name_for_node
from libcst.metadata import ImportAssignment

from unisono.migrate.edits import Span
from unisono.migrate.findings import FixKind
from unisono.migrate.rules.base import Draft


def imported_module(node: Any) -> str:
    """The module of `from X import ...`; "" for relative imports."""
    if node.relative or node.module is None:
        return ""
    return get_full_name_for_node(node.module) or ""


def imported_name(node: Any, alias: Any) -> str:
    """The full dotted name that one alias of an import statement brings in."""
    name = get_full_name_for_node(alias.name) or ""
    if isinstance(node, cst.Import):
        return name
    module = imported_module(node)
    return f"{module}.{name}" if module else ""


def references(draft: Draft, node: Any, alias: Any) -> list[Any]:
    """The base name of every expression that reads what this alias binds."""
    local = alias.asname.name.value if alias.asname is not None else (get_full_name_for_node(alias.name) or "")
    found: list[Any] = []
    for assignment in draft.view.scope_of(node).assignments:
        if (
            isinstance(assignment, ImportAssignment)
            and assignment.node is node
            and assignment.name in (local, local.split(".")[0])
        ):
            for access in assignment.references:
                base = access.node
                while isinstance(base, cst.Attribute):
                    base = base.value
                found.append(base)
    return found


def unresolved_names(draft: Draft) -> bool:
    """True when the module reads a name that nothing in it defines: a star import may bring it in."""
    view = draft.view
    return any(
        not access.referents and isinstance(access.node, cst.Name) and not hasattr(builtins, access.node.value)
        for scope in {id(view.scope_of(n)): view.scope_of(n) for n in view.nodes if isinstance(n, cst.Name)}.values()
        for access in scope.accesses
    )


def remove_aliases(
    draft: Draft, code: str, node: Any, removed: set[Any], why: str, kind: FixKind | None = None
) -> None:
    """Take these aliases out of an import statement, or the whole statement when none is left."""
    view = draft.view
    kept = [view.source(alias).rstrip(", ") for alias in node.names if alias not in removed]
    if kept:
        head = "import " if isinstance(node, cst.Import) else f"from {imported_module(node)} import "
        draft.replace(code, node, why, head + ", ".join(kept), kind=kind)
    else:
        remove_statement(draft, code, node, why, kind)


def remove_statement(draft: Draft, code: str, node: Any, why: str, kind: FixKind | None = None) -> None:
    """Take a small statement out with its line; the last one of a block leaves `pass` behind."""
    view = draft.view
    line = view.parent(node)
    block = view.parent(line)
    gone = draft.state.setdefault("removed", {})
    gone[block] = gone.get(block, 0) + 1
    last = isinstance(block, cst.IndentedBlock) and gone[block] == len(block.body)
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1 or last:
        draft.replace(code, node, why, "pass", kind=kind)
        return
    start = view.line_start(view.span(node).start)
    end = view.bytes.find(b"\n", view.span(node).end)
    end = len(view.bytes) if end < 0 else end + 1
    if view.line_of(start) != view.line_of(view.span(line).start):
        draft.replace(code, node, why, "pass", kind=kind)
        return
    draft.change(code, node, why, (Span(start, end), ""), kind=kind)
