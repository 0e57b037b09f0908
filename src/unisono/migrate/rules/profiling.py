"""M911 to M915: ranges, profilers and their tables."""

from __future__ import annotations

from typing import Any

import libcst as cst

from unisono.migrate.edits import Span
from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.removal import imported_module
from unisono.migrate.rules.shared import chain_parts, is_use, mark_rewritten
from unisono.migrate.syntax import argument, literal_value

FAMILY = Family(
    RuleInfo("M911", "ranges of nvtx", FixKind.SAFE),
    RuleInfo("M912", "the CUDA runtime called directly", FixKind.MANUAL),
    RuleInfo("M913", "the CUDA profiler", FixKind.MANUAL),
    RuleInfo("M914", "torch.profiler", FixKind.SAFE),
    RuleInfo("M915", "a column of the profiler's table", FixKind.MANUAL),
)

RANGES = {"range_push": "range_push", "range_pop": "range_pop", "mark": "mark", "range": "mstx_range"}
PROFILER = {"profile", "schedule", "tensorboard_trace_handler", "ProfilerAction", "ProfilerActivity"}


@FAMILY.on(cst.Attribute, cst.Name)
def names(draft: Draft, node: Any) -> None:
    """torch.cuda.nvtx, cudart, torch.cuda.profiler, torch.profiler."""
    view = draft.view
    if not is_use(view, node):
        return
    name = next((n for n in sorted(view.names(node)) if n.startswith("torch.")), "")
    if name.startswith("torch.cuda.nvtx"):
        _nvtx(draft, node, name)
    elif name.startswith("torch.cuda.cudart"):
        draft.report(
            "M912",
            node,
            "torch.npu has no cudart; a plain rename would raise AttributeError",
            "torch_npu.profiler.profile start and stop, or remove the call",
        )
    elif name.startswith("torch.cuda.profiler") or name == "torch.autograd.profiler.emit_nvtx":
        draft.report(
            "M913", node, "there is no CUDA profiler on NPUs", "torch_npu.profiler.profile, or torch.npu.mstx for marks"
        )
    elif name.startswith("torch.profiler."):
        _profiler(draft, node, name)


def _nvtx(draft: Draft, node: Any, name: str) -> None:
    view = draft.view
    function = name.rpartition(".")[2]
    new = RANGES.get(function)
    if new is None and function != "nvtx":
        draft.report(
            "M911",
            node,
            f"torch.npu.mstx has no {function}",
            "range_push, range_pop, mark or mstx_range of torch.npu.mstx",
        )
        return
    if draft.portable:
        call = view.parent(node)
        if function == "range" and isinstance(call, cst.Call):
            mark_rewritten(draft, node)
            draft.replace(
                "M911",
                node,
                "a range that every profiler shows",
                f"{draft.state['torch']}.profiler.record_function",
                kind=FixKind.UNSAFE,
            )
        elif function != "nvtx":
            draft.report(
                "M911",
                node,
                "nvtx raises without CUDA",
                "with torch.profiler.record_function(name): in place of push and pop",
            )
        return
    parts = chain_parts(node)
    if len(parts) == 1 and function != "nvtx":
        return  # the import is reported
    edits: list[tuple[Span, str]] = []
    for part, word in zip(reversed(parts[1:]), reversed(name.split(".")), strict=False):
        if word == "cuda":
            edits.append((view.span(part), "npu"))
        elif word == "nvtx":
            edits.append((view.span(part), "mstx"))
        elif new is not None and word == function and new != word:
            edits.append((view.span(part), new))
    if parts[0].value == "cuda" and draft.state["cuda_is_npu"]:
        edits.append((view.span(parts[0]), "npu"))
    if edits:
        draft.change("M911", node, "torch.npu.mstx marks ranges on NPUs", *edits)


def _profiler(draft: Draft, node: Any, name: str) -> None:
    view = draft.view
    first, _, rest = name[len("torch.profiler.") :].partition(".")
    if first not in PROFILER:
        return
    if draft.portable:
        if rest == "CUDA":
            draft.report(
                "M914",
                node,
                "the activity names CUDA",
                "choose the activity by the device that is there; NPUs: torch_npu.profiler.ProfilerActivity.NPU",
            )
        return
    parts = chain_parts(node)
    edits: list[tuple[Span, str]] = []
    if rest == "CUDA":
        edits.append((view.span(parts[-1]), "NPU"))
    if (
        "torch.profiler" in (".".join(p.value for p in parts[:2] if isinstance(p, cst.Name)), *view.names(parts[0]))
        and len(parts) > 1
    ):
        base_length = 2 if "torch" in view.names(parts[0]) else 1
        edits.append((Span(view.span(parts[0]).start, view.span(parts[base_length - 1]).end), "torch_npu.profiler"))
    if edits:
        draft.change(
            "M914", node, "torch_npu.profiler sees the NPU; PyTorch's sees the host only", *edits, needs=("torch_npu",)
        )


@FAMILY.on(cst.ImportFrom)
def profiler_import(draft: Draft, node: Any) -> None:
    """`from torch.profiler import profile, ProfilerActivity`."""
    if draft.portable or imported_module(node) != "torch.profiler" or isinstance(node.names, cst.ImportStar):
        return
    view = draft.view
    moved = [view.source(a).rstrip(", ") for a in node.names if a.name.value in PROFILER]
    kept = [view.source(a).rstrip(", ") for a in node.names if a.name.value not in PROFILER]
    if not moved:
        return
    lines = [f"from torch_npu.profiler import {', '.join(moved)}"]
    lines += [f"from torch.profiler import {', '.join(kept)}"] if kept else []
    draft.replace(
        "M914",
        node,
        "torch_npu.profiler sees the NPU",
        (view.newline + view.indent_of(node)).join(lines),
        needs=("torch_npu",),
    )


@FAMILY.on(cst.Call)
def profiler_arguments(draft: Draft, node: Any) -> None:
    """`profile(use_cuda=True)` and `table(sort_by="cuda_time_total")`."""
    view = draft.view
    use_cuda = argument(node, "use_cuda")
    if use_cuda is not None and any("profiler" in name for name in view.names(node.func)):
        draft.report(
            "M914", use_cuda, "the argument names CUDA", "torch_npu.profiler.profile(activities=[ProfilerActivity.NPU])"
        )
    sort_by = argument(node, "sort_by")
    text = literal_value(sort_by.value) if sort_by is not None else None
    if text is not None and "cuda" in text:
        draft.report(
            "M915",
            sort_by,
            "NPU traces have no such column, and key_averages is not supported",
            "read the trace with msprof, or sort by cpu_time_total",
        )
