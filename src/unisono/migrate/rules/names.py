"""M2: names under torch.cuda, where they are used. Renamed only where torch.npu has the name."""

from __future__ import annotations

from typing import Any

import libcst as cst

from unisono.migrate.edits import Span
from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.knowledge import CudaName, find_cuda_name
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.shared import (
    ACCELERATOR,
    chain_edits,
    chain_parts,
    guarded_statement,
    imports_of,
    is_use,
    mark_rewritten,
)

FAMILY = Family(
    RuleInfo("M201", "a torch.cuda name that torch.npu has", FixKind.SAFE),
    RuleInfo("M202", "a torch.cuda name that torch.npu has under another name", FixKind.UNSAFE),
    RuleInfo("M203", "a torch.cuda name that torch.npu does not have", FixKind.MANUAL),
    RuleInfo("M205", "what a device tells about itself differs", FixKind.MANUAL),
    RuleInfo("M206", "the out-of-memory error", FixKind.SAFE),
    RuleInfo("M208", "torch.cuda.comm", FixKind.MANUAL),
    RuleInfo("M209", "autocast type functions that name the GPU", FixKind.SAFE),
    RuleInfo("M210", "the CUDA version of PyTorch", FixKind.MANUAL),
)

# Other families deal with these.
ELSEWHERE = ("amp.autocast", "amp.GradScaler", "amp.custom_fwd", "amp.custom_bwd", "nvtx", "cudart", "profiler")

# They raise where there is no accelerator, unlike their CUDA originals behind `if is_available()`.
NEED_A_DEVICE = {"set_device", "synchronize", "set_stream"}

AUTOCAST_NAMES = {
    "torch.get_autocast_gpu_dtype": ("get_autocast_dtype", ""),
    "torch.set_autocast_gpu_dtype": ("set_autocast_dtype", ", "),
    "torch.is_autocast_gpu_enabled": ("is_autocast_enabled", ""),
}


@FAMILY.on(cst.Attribute, cst.Name)
def cuda_name(draft: Draft, node: Any) -> None:
    """Rename `torch.cuda.X`, however torch or torch.cuda is spelt here."""
    view = draft.view
    if not is_use(view, node) or node in draft.handled:
        return
    qualified = next((n for n in sorted(view.names(node)) if n == "torch.cuda" or n.startswith("torch.cuda.")), None)
    if qualified is None:
        return
    relative = qualified[len("torch.cuda.") :]
    if relative.startswith(ELSEWHERE):
        return
    if relative == "OutOfMemoryError":
        _out_of_memory(draft, node)
    elif relative == "comm" or relative.startswith("comm."):
        draft.report(
            "M208", node, "torch_npu has no torch.cuda.comm", "use torch.distributed collectives, one process a device"
        )
    elif draft.portable:
        _portable(draft, node, relative)
    else:
        _npu(draft, node, qualified, relative)


def _out_of_memory(draft: Draft, node: Any) -> None:
    if isinstance(node, cst.Name) and not draft.portable:
        return  # the import is rewritten
    torch = draft.state["torch"]
    mark_rewritten(draft, node)
    draft.replace("M206", node, "torch.OutOfMemoryError is the same class on every device", f"{torch}.OutOfMemoryError")


def _npu(draft: Draft, node: Any, qualified: str, relative: str) -> None:
    entry = find_cuda_name(relative) if relative else None
    if relative and (entry is None or not entry.npu):
        _missing(draft, node, relative, entry)
        return
    edits = chain_edits(draft, node, qualified, entry.npu if entry is not None and entry.npu != entry.name else "")
    _properties(draft, node, relative)
    if not edits:
        return
    renamed = entry is not None and entry.npu != entry.name
    if renamed and entry is not None:
        why = (
            f"torch.cuda.{entry.name} is called torch.npu.{entry.npu}; graphs are for inference only"
            if "Graph" in entry.npu
            else (f"torch.cuda.{entry.name} is called torch.npu.{entry.npu}")
        )
        draft.change("M202", node, why, *edits)
    else:
        draft.change("M201", node, f"torch.npu has {relative or 'the same interface as torch.cuda'}", *edits)


def _missing(draft: Draft, node: Any, relative: str, entry: CudaName | None) -> None:
    advice = entry.advice if entry is not None else "look for it in the torch_npu documentation, or leave the call out"
    draft.report("M203", node, f"torch.npu has no {relative}; a plain rename would raise AttributeError", advice)


def _portable(draft: Draft, node: Any, relative: str) -> None:
    torch = draft.state["torch"]
    if isinstance(draft.view.parent(node), cst.AssignTarget):
        return
    entry = find_cuda_name(relative) if relative else None
    if relative and (entry is None or not entry.npu):
        _missing(draft, node, relative, entry)
        return
    why = "torch.accelerator answers for the device that is there"
    alias = isinstance(chain_parts(node)[0], cst.Name) and not _rooted_in_import(draft, node)
    if entry is None or alias:
        if entry is None and not alias:
            mark_rewritten(draft, node)
            draft.replace(
                "M201",
                node,
                "the module of the device that is there",
                f"{torch}.get_device_module({ACCELERATOR})",
                needs=(ACCELERATOR,),
            )
        return
    _properties(draft, node, relative)
    if not entry.portable:
        draft.report(
            "M203",
            node,
            f"{relative} has no form that runs on every device",
            _typed_advice(relative) or entry.advice or f"write it for one device, behind `if {ACCELERATOR} == ...`",
        )
        return
    mark_rewritten(draft, node)
    if entry.portable == "module":
        text = f"{torch}.get_device_module({ACCELERATOR}).{relative}"
        draft.replace(
            "M201", node, "the same name in the module of the device that is there", text, needs=(ACCELERATOR,)
        )
        return
    text = f"{torch}.{entry.portable}{relative[len(entry.name) :]}"
    plain = _by_position(draft, node) if entry.portable.startswith("accelerator.") else []
    guard = guarded_statement(draft, node) if relative in NEED_A_DEVICE else None
    if guard is not None:
        start = draft.view.span(guard).start
        inner = f"if {torch}.accelerator.is_available():{draft.view.newline}{draft.view.indent_of(guard)}{draft.view.indent}"
        draft.change("M201", node, why, (Span(start, start), inner), (draft.view.span(node), text), *plain)
    else:
        draft.change("M201", node, why, (draft.view.span(node), text), *plain)


def _by_position(draft: Draft, node: Any) -> list[tuple[Span, str]]:
    """torch.accelerator takes the device by position only."""
    call = draft.view.parent(node)
    if not isinstance(call, cst.Call) or call.func is not node or len(call.args) != 1 or call.args[0].keyword is None:
        return []
    argument = call.args[0]
    return [(Span(draft.view.span(argument).start, draft.view.outer_span(argument.value).start), "")]


def _typed_advice(relative: str) -> str:
    if relative.endswith("Tensor"):
        return f"torch.tensor(..., dtype=..., device={ACCELERATOR}); for a type name, .type(...) takes a dtype"
    return ""


def _rooted_in_import(draft: Draft, node: Any) -> bool:
    base = chain_parts(node)[0]
    return isinstance(base, cst.Name) and bool(imports_of(draft, base))


def _properties(draft: Draft, node: Any, relative: str) -> None:
    if relative == "get_device_capability":
        draft.report(
            "M205",
            node,
            "on NPUs it returns None unless TORCH_NPU_DEVICE_CAPABILITY is set, so comparing or indexing it raises",
            "guard it with `is not None`, or decide by torch.npu.get_device_name()",
        )
    elif relative == "get_device_properties":
        _missing_properties(draft, node)


def _missing_properties(draft: Draft, node: Any) -> None:
    view = draft.view
    call = view.parent(node)
    readers = [view.parent(call)]
    assign = view.first_ancestor(call, cst.Assign)
    if assign is not None and assign.value is call and isinstance(assign.targets[0].target, cst.Name):
        readers = [view.parent(access) for access in view.accesses(assign.targets[0].target)]
    for reader in readers:
        if isinstance(reader, cst.Attribute) and reader.attr.value in (
            "major",
            "minor",
            "multi_processor_count",
            "warp_size",
        ):
            draft.report(
                "M205",
                reader,
                f"an NPU's properties have no {reader.attr.value}: name, total_memory, L2_cache_size, cube_core_num, vector_core_num",
                "decide by .name, or count cube_core_num",
            )


@FAMILY.on(cst.Call)
def autocast_type(draft: Draft, node: Any) -> None:
    """`torch.get_autocast_gpu_dtype()` and its kind take the device's name now."""
    known = AUTOCAST_NAMES.get(draft.view.name(node.func) or "")
    if known is None or not isinstance(node.func, cst.Attribute):
        return
    name, separator = known
    device = ACCELERATOR if draft.portable else '"npu"'
    inside = draft.view.span(node.func).end + 1
    draft.change(
        "M209",
        node,
        "the function without gpu in its name takes the device",
        (draft.view.span(node.func.attr), name),
        (Span(inside, inside), device + (separator if node.args else "")),
        needs=(ACCELERATOR,) if draft.portable else (),
    )


@FAMILY.on(cst.Attribute)
def cuda_version(draft: Draft, node: Any) -> None:
    """`torch.version.cuda` is None without CUDA."""
    if draft.view.name(node) == "torch.version.cuda":
        draft.report(
            "M210",
            node,
            "it is None without CUDA, so float() of it, split and comparisons raise",
            "torch.version.cann under torch_npu; guard the line with `if torch.version.cuda is not None`",
        )
