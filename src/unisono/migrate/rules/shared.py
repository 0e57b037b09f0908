"""What several families need: chains of names, device expressions, words that speak of devices."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst
from libcst.metadata import ImportAssignment

from unisono.migrate.edits import Span
from unisono.migrate.rules.base import Draft
from unisono.migrate.syntax import ModuleView, literal_value

ACCELERATOR = "ACCELERATOR"
"""The constant that portable code reads: "npu", "cuda" or "cpu"."""
COLLECTIVE_BACKEND = "COLLECTIVE_BACKEND"
"""The constant that portable code reads: "hccl", "nccl" or "gloo"."""
GRAD_SCALER = "grad_scaler"
"""The scaler that stands in for apex.amp."""
DEVICE_FUNCTION = "accelerator_device"
"""The function that portable code calls where an index may be None or a device."""

DEVICE_WORD = re.compile(r"(^|_)(device|devices|dev|loc|map_location)(_|$|\d)|device", re.IGNORECASE)
BACKEND_WORD = re.compile(r"backend", re.IGNORECASE)


def is_maximal(view: ModuleView, node: Any) -> bool:
    """True when the dotted name does not go on to the right."""
    parent = view.parent(node)
    if isinstance(parent, cst.Attribute):
        return False
    return not (isinstance(parent, cst.Arg) and parent.keyword is node)


def is_import_part(view: ModuleView, node: Any) -> bool:
    """True for names inside an import statement."""
    return isinstance(view.parent(node), cst.ImportAlias | cst.ImportFrom | cst.AsName)


def is_binding(view: ModuleView, node: Any) -> bool:
    """True where the name is being assigned, declared or named as a parameter."""
    parent = view.parent(node)
    if isinstance(parent, cst.AssignTarget | cst.FunctionDef | cst.ClassDef | cst.NameItem):
        return isinstance(node, cst.Name)
    if isinstance(parent, cst.Param):
        return parent.name is node
    return isinstance(parent, cst.AnnAssign) and parent.target is node and isinstance(node, cst.Name)


def is_use(view: ModuleView, node: Any) -> bool:
    """True for a whole dotted name that is read here, outside import statements.

    A bare local name that stands for such a thing is no use of its own: the place that it was set from is.
    """
    if not is_maximal(view, node) or is_import_part(view, node) or is_binding(view, node):
        return False
    return not isinstance(node, cst.Name) or any(
        isinstance(a, ImportAssignment) for a in view.scope_of(node)[node.value]
    )


def chain_parts(node: Any) -> list[Any]:
    """The parts of a dotted expression, base first: `a.b.c` gives the nodes a, b, c."""
    parts: list[Any] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node)
    return parts[::-1]


def chain_edits(draft: Draft, node: Any, qualified: str, new_name: str = "") -> list[tuple[Span, str]]:
    """Edits that turn `torch.cuda.X...` into `torch.npu.X...` where the source spells those parts out.

    Parts that an import or an alias stands for are left: their own definition is rewritten. `new_name` replaces X.
    """
    parts = chain_parts(node)
    shift = len(qualified.split(".")) - len(parts)
    edits: list[tuple[Span, str]] = []
    for index, part in enumerate(parts):
        position = index + shift
        from_import = index == 0 and isinstance(part, cst.Name) and part.value == "cuda" and draft.state["cuda_is_npu"]
        if position == 1 and (index > 0 or from_import):
            edits.append((draft.view.span(part), "npu"))
        elif position == 2 and index > 0 and new_name:
            edits.append((draft.view.span(part), new_name))
    return edits


def last_name(node: Any) -> str:
    """The last word of a name, attribute, subscript by a string, or call: "device" for `args.device`; "" otherwise."""
    if isinstance(node, cst.Name):
        return str(node.value)
    if isinstance(node, cst.Attribute):
        return str(node.attr.value)
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        return literal_value(node.slice[0].slice.value) or ""
    if isinstance(node, cst.Call):
        return last_name(node.func)
    return ""


def mark_rewritten(draft: Draft, node: Any) -> None:
    """Remember that this use no longer needs the import of its first name."""
    draft.state.setdefault("rewritten", set()).add(chain_parts(node)[0])


def guarded_statement(draft: Draft, node: Any) -> Any:
    """The statement that is only this call, when nothing around it asks whether there is a device; else None."""
    view = draft.view
    call = view.parent(node)
    expression = view.parent(call)
    line = view.parent(expression)
    if not (isinstance(expression, cst.Expr) and isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1):
        return None
    for ancestor in view.ancestors(line):
        if isinstance(ancestor, cst.If) and re.search(
            r"is_available|cuda|ACCELERATOR|device", view.source(ancestor.test)
        ):
            return None
    return line


def imports_of(draft: Draft, name_node: Any) -> list[Any]:
    """The import assignments that a name can come from."""
    return [a for a in draft.view.scope_of(name_node)[name_node.value] if isinstance(a, ImportAssignment)]


def call_text(draft: Draft, node: Any) -> str:
    """The source of a node, for use inside a new text."""
    return draft.view.source(node)


def speaks_of_device(view: ModuleView, node: Any) -> bool:
    """True for expressions that hold a device or its name: `device`, `args.device`, `x.device.type`, `str(device)`."""
    if isinstance(node, cst.Call):
        if isinstance(node.func, cst.Name) and node.func.value == "str" and node.args:
            return speaks_of_device(view, node.args[0].value)
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in ("split", "lower", "strip"):
            return speaks_of_device(view, node.func.value)
        return (
            view.name(node) == "torch.device"
            or view.name(node.func) == "torch.device"
            or bool(DEVICE_WORD.search(last_name(node.func)))
        )
    if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Call):
        return speaks_of_device(view, node.value)
    if isinstance(node, cst.Attribute) and node.attr.value in ("type", "device_type"):
        return speaks_of_device(view, node.value) or node.attr.value == "device_type"
    return bool(DEVICE_WORD.search(last_name(node)))
