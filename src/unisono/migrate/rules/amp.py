"""M4: mixed precision, in the old form (torch.cuda.amp) and the new (torch.amp)."""

from __future__ import annotations

from typing import Any

import libcst as cst

from unisono.migrate.edits import Part, Span
from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.shared import (
    ACCELERATOR,
    chain_edits,
    is_use,
    mark_rewritten,
)
from unisono.migrate.syntax import argument

FAMILY = Family(
    RuleInfo("M401", "autocast of torch.cuda.amp", FixKind.SAFE),
    RuleInfo("M402", "GradScaler of torch.cuda.amp", FixKind.SAFE),
    RuleInfo("M405", "custom_fwd and custom_bwd", FixKind.SAFE),
    RuleInfo("M406", "autocast or GradScaler without its device", FixKind.SAFE),
)

AUTOCAST = {"torch.cuda.amp.autocast", "torch.cuda.amp.autocast_mode.autocast"}
SCALER = {"torch.cuda.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler"}
CUSTOM = {
    "torch.cuda.amp.custom_fwd",
    "torch.cuda.amp.custom_bwd",
    "torch.cuda.amp.autocast_mode.custom_fwd",
    "torch.cuda.amp.autocast_mode.custom_bwd",
}
AUTOCAST_ARGUMENTS = ("enabled", "dtype", "cache_enabled")
SCALER_ARGUMENTS = ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled")


@FAMILY.on(cst.Attribute, cst.Name)
def old_form(draft: Draft, node: Any) -> None:
    """Uses of torch.cuda.amp names."""
    view = draft.view
    if not is_use(view, node):
        return
    names = view.names(node)
    qualified = next(iter(sorted(names & (AUTOCAST | SCALER | CUSTOM))), None)
    if qualified is None:
        return
    parent = view.parent(node)
    call = parent if isinstance(parent, cst.Call) and parent.func is node else None
    code = "M401" if qualified in AUTOCAST else "M402" if qualified in SCALER else "M405"
    if draft.portable:
        if len(names) > 1:
            # `try: from apex... except: from torch.cuda.amp import autocast`: one name for several things.
            draft.report(
                code,
                node,
                "this name comes from one of several imports",
                f"call torch.autocast or torch.amp.GradScaler with {ACCELERATOR}",
            )
            return
        _portable(draft, node, call, code)
        return
    edits: list[tuple[Span, Any]] = list(chain_edits(draft, node, qualified))
    why = "torch.npu.amp has it under the same name"
    if code == "M402" and call is not None:
        edits += _enabled_by_keyword(draft, call)
    if edits:
        draft.change(code, node, why, *edits)


def _enabled_by_keyword(draft: Draft, call: Any) -> list[tuple[Span, Any]]:
    """The fifth argument is `dynamic` in torch_npu, and `enabled` in PyTorch."""
    fifth = argument(call, "enabled", 4)
    if fifth is None or fifth.keyword is not None:
        return []
    start = draft.view.outer_span(fifth.value).start
    return [(Span(start, start), "enabled=")]


def _portable(draft: Draft, node: Any, call: Any, code: str) -> None:
    view = draft.view
    torch = draft.state["torch"]
    last = (view.name(node, "torch.cuda") or "").rpartition(".")[2]
    name = {"M401": "autocast", "M402": "amp.GradScaler"}.get(code, f"amp.{last}")
    if call is None:
        if code == "M405":
            mark_rewritten(draft, node)
            draft.replace(
                code,
                node,
                "the form that takes the device",
                f"{torch}.{name}(device_type={ACCELERATOR})",
                needs=(ACCELERATOR,),
            )
        elif isinstance(view.parent(node), cst.Decorator):
            mark_rewritten(draft, node)
            draft.replace(
                code, node, "the form that takes the device", f"{torch}.{name}({ACCELERATOR})", needs=(ACCELERATOR,)
            )
        else:
            draft.report(
                code, node, "the class is handed on without a call", f"functools.partial(torch.{name}, {ACCELERATOR})"
            )
        return None
    mark_rewritten(draft, node)
    parts: list[Part] = [f"{torch}.{name}({'device_type=' if code == 'M405' else ''}{ACCELERATOR}"]
    order = AUTOCAST_ARGUMENTS if code == "M401" else SCALER_ARGUMENTS if code == "M402" else ("cast_inputs",)
    for index, arg in enumerate(call.args):
        keyword = (
            arg.keyword.value if arg.keyword is not None else "" if arg.star or index >= len(order) else order[index]
        )
        if code == "M405" and arg.keyword is None and not arg.star:
            return draft.report(
                code,
                call,
                "the wrapped function is given directly",
                f"torch.{name}(device_type={ACCELERATOR})(function)",
            )
        parts += [f", {arg.star}{keyword + '=' if keyword else ''}", view.outer_span(arg.value)]
    draft.change(code, node, "the form that takes the device", (view.span(call), (*parts, ")")), needs=(ACCELERATOR,))
    return None


@FAMILY.on(cst.Call)
def device_left_out(draft: Draft, node: Any) -> None:
    """`torch.amp.GradScaler()` means cuda, and stays switched off on an NPU."""
    view = draft.view
    if not view.names(node.func) & {"torch.amp.GradScaler", "torch.GradScaler", "torch.is_autocast_enabled"}:
        return
    if (
        argument(node, "device", 0) is not None
        or argument(node, "device_type", 0) is not None
        or any(arg.star for arg in node.args)
    ):
        return
    device = ACCELERATOR if draft.portable else '"npu"'
    at = view.span(node.func).end
    at = view.bytes.index(b"(", at) + 1
    text = device + (", " if node.args else "")
    draft.change(
        "M406",
        node,
        "without a device it means cuda, and stays off in silence",
        (Span(at, at), text),
        needs=(ACCELERATOR,) if draft.portable else (),
    )
