"""M204: imports from torch.cuda."""

from __future__ import annotations

from typing import Any

import libcst as cst
from libcst.helpers import get_full_name_for_node

from unisono.migrate.edits import Span
from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.knowledge import find_cuda_name
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.removal import imported_module, imported_name, references, remove_aliases

FAMILY = Family(
    RuleInfo("M204", "an import from torch.cuda", FixKind.SAFE),
)

USED_UP = "every use of it has been rewritten"
WHY = "the imported name has its counterpart under torch.npu"


def _start(draft: Draft) -> None:
    view = draft.view
    draft.state["torch"] = view.local_name_of("torch") or "torch"
    plain = any(
        isinstance(node, cst.ImportAlias)
        and isinstance(node.name, cst.Name)
        and node.name.value == "cuda"
        and node.asname is None
        and isinstance(view.parent(node), cst.ImportFrom)
        and imported_module(view.parent(node)) == "torch"
        for node in view.nodes
    )
    draft.state["cuda_is_npu"] = plain and not draft.portable and not view.binds("npu")


FAMILY.starts.append(_start)


@FAMILY.on(cst.Import)
def plain_import(draft: Draft, node: Any) -> None:
    """`import torch.cuda.amp as amp` and the like."""
    if draft.portable:
        return
    for alias in node.names:
        name = get_full_name_for_node(alias.name) or ""
        if name != "torch.cuda" and not name.startswith("torch.cuda."):
            continue
        relative = name[len("torch.cuda.") :]
        if relative == "nvtx" and alias.asname is not None:
            asname = alias.asname.name.value
            statement = f"from torch.npu import mstx as {asname}"
            if len(node.names) == 1:
                draft.replace("M204", node, "torch.npu.mstx marks ranges on NPUs", statement)
            continue
        entry = find_cuda_name(relative) if relative else None
        if relative and (entry is None or not entry.npu):
            advice = entry.advice if entry is not None else "leave it out"
            draft.report("M204", alias, f"torch.npu has no {relative}", advice)
            continue
        for part in _attributes(alias.name):
            if part.value == "cuda":
                draft.change("M204", alias, WHY, (draft.view.span(part), "npu"))


def _attributes(node: Any) -> list[Any]:
    parts: list[Any] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr)
        node = node.value
    return [*parts, node]


@FAMILY.on(cst.ImportFrom)
def from_import(draft: Draft, node: Any) -> None:
    """`from torch import cuda` and `from torch.cuda... import ...`."""
    module = imported_module(node)
    if draft.portable or not (module == "torch" or module == "torch.cuda" or module.startswith("torch.cuda.")):
        return
    if isinstance(node.names, cst.ImportStar):
        if module != "torch":
            draft.report(
                "M204", node, "a star import hides which names of torch.cuda are used", "import the names one by one"
            )
        return
    if module == "torch":
        _cuda_module(draft, node)
    else:
        _cuda_members(draft, node, module)


def _cuda_module(draft: Draft, node: Any) -> None:
    for alias in node.names:
        if alias.name.value != "cuda":
            continue
        text = "npu" if alias.asname is not None or draft.state["cuda_is_npu"] else "npu as cuda"
        draft.change("M204", node, WHY, (draft.view.span(alias.name), text))


def _cuda_members(draft: Draft, node: Any, module: str) -> None:
    view = draft.view
    package = module[len("torch.cuda.") :]
    kept: list[str] = []
    moved: list[str] = []
    general: list[str] = []
    edits: list[tuple[Span, str]] = []
    for alias in node.names:
        name = alias.name.value
        relative = f"{package}.{name}" if package else name
        local = alias.asname.name.value if alias.asname is not None else name
        new = _npu_name(relative)
        if name == "OutOfMemoryError":
            general.append(name if local == name else f"{name} as {local}")
        elif new is None:
            kept.append(view.source(alias).rstrip(", "))
            _report_missing(draft, alias, relative)
        else:
            moved.append(new if local == new else f"{new} as {local}")
            if new != name:
                edits.append((view.span(alias.name), new if alias.asname is not None else f"{new} as {name}"))
    if not kept and not general:
        cuda = next(part for part in _attributes(node.module) if part.value == "cuda")
        draft.change("M204", node, WHY, (view.span(cuda), "npu"), *edits)
    elif moved or general:
        lines = [f"from {module.replace('cuda', 'npu', 1)} import {', '.join(moved)}"] if moved else []
        lines += [f"from torch import {', '.join(general)}"] if general else []
        lines += [f"from {module} import {', '.join(kept)}"] if kept else []
        draft.replace("M204", node, WHY, (view.newline + view.indent_of(node)).join(lines))


def _npu_name(relative: str) -> str | None:
    if relative == "nvtx":
        return "mstx"
    if relative.startswith("nvtx."):
        return None
    entry = find_cuda_name(relative)
    if entry is None or not entry.npu:
        return None
    return entry.npu.rpartition(".")[2] if relative == entry.name else relative.rpartition(".")[2]


def _report_missing(draft: Draft, alias: Any, relative: str) -> None:
    entry = find_cuda_name(relative)
    advice = entry.advice if entry is not None and entry.advice else "leave it out"
    if relative.startswith("nvtx."):
        advice = "torch.npu.mstx is a class: call torch.npu.mstx.range_push and its kind by their full names"
    draft.report("M204", alias, f"torch.npu has no {relative}; an import of it would fail", advice)


def _finish(draft: Draft) -> None:
    """Portable target: take out the imports whose every use has been rewritten."""
    if not draft.portable:
        return
    view = draft.view
    rewritten = draft.state.get("rewritten", set())
    for node in view.nodes:
        if not isinstance(node, cst.Import | cst.ImportFrom) or isinstance(node.names, cst.ImportStar):
            continue
        cuda = [a for a in node.names if (n := imported_name(node, a)) == "torch.cuda" or n.startswith("torch.cuda.")]
        gone: set[Any] = set()
        for alias in cuda:
            # Without `as` it binds `torch`, which `import torch` goes on binding.
            plain = isinstance(node, cst.Import) and alias.asname is None
            if plain or all(use in rewritten for use in references(draft, node, alias)):
                gone.add(alias)
            else:
                draft.report(
                    "M204",
                    alias,
                    "some uses of this import could not be rewritten",
                    "rewrite them, then remove the import",
                )
        if not gone:
            continue
        if isinstance(node, cst.Import) and len(gone) == len(node.names) and not view.local_name_of("torch"):
            draft.replace("M204", node, USED_UP, "import torch")
        else:
            remove_aliases(draft, "M204", node, gone, USED_UP)


FAMILY.finishes.append(_finish)
