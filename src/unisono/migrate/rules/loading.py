"""M6: checkpoints and data loaders."""

from __future__ import annotations

from typing import Any

import libcst as cst

from unisono.migrate.edits import Span
from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.shared import ACCELERATOR, DEVICE_FUNCTION, last_name
from unisono.migrate.syntax import argument, literal_value

FAMILY = Family(
    RuleInfo("M601", "torch.load without map_location", FixKind.UNSAFE),
    RuleInfo("M602", "a map from saved device to new device", FixKind.SAFE),
    RuleInfo("M603", "a function as map_location", FixKind.SAFE),
    RuleInfo("M606", "workers of a DataLoader started by fork", FixKind.MANUAL),
)


@FAMILY.on(cst.Call)
def load(draft: Draft, node: Any) -> None:
    """`torch.load(path)` wants the device that the file was saved on."""
    view = draft.view
    if "torch.load" not in view.names(node.func) or not node.args or any(arg.star for arg in node.args):
        return
    if argument(node, "map_location", 1) is not None:
        return
    end = view.outer_span(node.args[0].value).end
    first = node.args[0]
    if first.keyword is not None and len(node.args) > 1:
        end = view.outer_span(node.args[-1].value).end
    draft.change(
        "M601",
        node,
        "a checkpoint saved on a GPU asks for CUDA when it is read; load_state_dict copies to the device",
        (Span(end, end), ', map_location="cpu"'),
    )


@FAMILY.on(cst.Dict)
def device_map(draft: Draft, node: Any) -> None:
    """`{"cuda:0": "cuda:1"}`: the key names the device the file was saved on, and stays."""
    view = draft.view
    parent = view.parent(node)
    keyword = parent.keyword.value if isinstance(parent, cst.Arg) and parent.keyword is not None else ""
    name = last_name(parent.targets[0].target) if isinstance(parent, cst.Assign) else ""
    call = view.parent(parent) if isinstance(parent, cst.Arg) else None
    second = isinstance(call, cst.Call) and "torch.load" in view.names(call.func) and not keyword
    if keyword != "map_location" and name != "map_location" and not second:
        return
    for row in node.elements:
        if isinstance(row, cst.DictElement) and "cuda" in view.source(row.key):
            pending = [row.key]
            while pending:
                child = pending.pop()
                draft.handled.add(child)
                pending.extend(child.children)
            value = literal_value(row.value)
            if value is None or not value.startswith("cuda"):
                continue
            draft.handled.add(row.value)
            source, quote = view.source(row.value), row.value.quote
            why = "only the new device changes; the key names the device the file was saved on"
            if draft.portable:
                draft.replace(
                    "M602", row.value, why, f"f{quote}{{{ACCELERATOR}}}{value[4:]}{quote}", needs=(ACCELERATOR,)
                )
            else:
                draft.replace("M602", row.value, why, source.replace("cuda", "npu", 1))


@FAMILY.on(cst.Lambda)
def storage_function(draft: Draft, node: Any) -> None:
    """`lambda storage, loc: storage.cuda(i)`."""
    view = draft.view
    body = node.body
    parent = view.parent(node)
    if not isinstance(parent, cst.Arg) or not isinstance(body, cst.Call) or not isinstance(body.func, cst.Attribute):
        return
    call = view.parent(parent)
    is_load = isinstance(call, cst.Call) and "torch.load" in view.names(call.func)
    receiver = body.func.value
    parameters = [p.name.value for p in node.params.params]
    if (
        body.func.attr.value != "cuda"
        or not is_load
        or not isinstance(receiver, cst.Name)
        or receiver.value not in parameters[:1]
    ):
        return
    if not draft.portable:
        draft.handled.add(body)
        draft.change("M603", node, "storages have .npu() with the same arguments", (view.span(body.func.attr), "npu"))
        return
    if body.args:
        draft.change(
            "M603",
            node,
            "map_location takes the device itself",
            (view.span(node), (f"{DEVICE_FUNCTION}(", view.outer_span(body.args[0].value), ")")),
            needs=(ACCELERATOR, DEVICE_FUNCTION),
        )
    else:
        draft.replace("M603", node, "map_location takes the device itself", ACCELERATOR, needs=(ACCELERATOR,))


@FAMILY.on(cst.Call)
def worker_start(draft: Draft, node: Any) -> None:
    """DataLoader(multiprocessing_context="fork") after the device was touched."""
    if not (draft.view.name(node.func) or "").endswith(".DataLoader"):
        return
    context = argument(node, "multiprocessing_context")
    if context is not None and literal_value(context.value) == "fork":
        draft.report(
            "M606",
            context,
            "a fork after the first use of an NPU hangs or fails",
            'multiprocessing_context="forkserver"',
        )
