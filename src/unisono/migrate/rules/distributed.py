"""M3: process groups: backend strings, tables of backends, what NCCL alone has."""

from __future__ import annotations

from typing import Any

import libcst as cst

from unisono.migrate.edits import Span
from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.shared import ACCELERATOR, COLLECTIVE_BACKEND, last_name, mark_rewritten
from unisono.migrate.rules.strings import TEXT_FUNCTIONS
from unisono.migrate.syntax import argument, literal_value

FAMILY = Family(
    RuleInfo("M301", "a backend string", FixKind.SAFE),
    RuleInfo("M302", "is_nccl_available()", FixKind.SAFE),
    RuleInfo("M304", "how the process group meets", FixKind.MANUAL),
    RuleInfo("M305", "the process group class of NCCL", FixKind.MANUAL),
    RuleInfo("M310", "a table of devices and backends", FixKind.SAFE),
    RuleInfo("M312", "a pair of backends", FixKind.SAFE),
)

NEEDS = (ACCELERATOR, COLLECTIVE_BACKEND)
FALLBACK_WHY = "the choice made at run time; half of it changed would train over gloo in silence"


@FAMILY.on(cst.IfExp)
def backend_choice(draft: Draft, node: Any) -> None:
    """`"nccl" if torch.cuda.is_available() else "gloo"`, in portable code one constant."""
    view = draft.view
    if literal_value(node.body) != "nccl" or literal_value(node.orelse) != "gloo":
        return
    asked = isinstance(node.test, cst.Call) and view.names(node.test.func) & {
        "torch.cuda.is_available", "torch.distributed.is_nccl_available",
    }  # fmt: skip
    draft.handled.add(node.body)
    if not draft.portable:
        draft.replace("M301", node.body, FALLBACK_WHY, view.source(node.body).replace("nccl", "hccl"))
    elif asked:
        mark_rewritten(draft, node.test.func)
        draft.handled.add(node.test.func)
        draft.handled.add(node.test)
        draft.replace("M301", node, "the backend of the device that is there", COLLECTIVE_BACKEND, needs=NEEDS)
    else:
        draft.replace("M301", node.body, "the backend of the device that is there", COLLECTIVE_BACKEND, needs=NEEDS)


@FAMILY.on(cst.SimpleString)
def backend_string(draft: Draft, node: Any) -> None:
    """ "nccl", and "cpu:gloo,cuda:nccl"."""
    text = literal_value(node)
    if text is None or node in draft.handled or "nccl" not in text.lower():
        return
    view = draft.view
    if "cuda:nccl" in text and _is_code(draft, node):
        if "npu:hccl" not in text:
            new = "cuda:nccl,npu:hccl" if draft.portable else "npu:hccl"
            draft.replace(
                "M312", node, "each device type with its own backend", view.source(node).replace("cuda:nccl", new)
            )
        return
    if text not in ("nccl", "NCCL") or not _is_code(draft, node):
        return
    parent = view.parent(node)
    if isinstance(parent, cst.DictElement):
        return  # backend_table
    if draft.portable:
        if isinstance(parent, cst.Element):
            _add_choice(draft, node, parent)
        else:
            draft.replace("M301", node, "the backend of the device that is there", COLLECTIVE_BACKEND, needs=NEEDS)
        return
    draft.replace(
        "M301", node, "NPUs communicate over HCCL", view.source(node).replace("nccl", "hccl").replace("NCCL", "HCCL")
    )


def _add_choice(draft: Draft, node: Any, element: Any) -> None:
    view = draft.view
    sequence = view.parent(element)
    if any(literal_value(item.value) in ("hccl", "HCCL") for item in sequence.elements):
        return
    end = view.span(node).end
    new = view.source(node).replace("nccl", "hccl").replace("NCCL", "HCCL")
    draft.change("M301", node, "hccl joins the backends to choose from", (Span(end, end), f", {new}"))


def _is_code(draft: Draft, node: Any) -> bool:
    """False for messages, keys, paths and texts for people."""
    view = draft.view
    parent = view.parent(node)
    if isinstance(
        parent,
        cst.Index
        | cst.Expr
        | cst.FormattedStringExpression
        | cst.Raise
        | cst.Attribute
        | cst.ConcatenatedString
        | cst.BinaryOperation,
    ):
        return False
    if isinstance(parent, cst.Arg):
        call = view.parent(parent)
        function = last_name(call.func) if isinstance(call, cst.Call) else ""
        keyword = parent.keyword.value if parent.keyword is not None else ""
        if function == "add_argument":
            return keyword == "default"
        if function == "getattr":
            return list(call.args).index(parent) == 2
        if function in TEXT_FUNCTIONS and not keyword:
            return function in ("get", "pop", "setdefault") and list(call.args).index(parent) == 1
        return keyword not in ("help", "description", "msg", "message")
    return True


@FAMILY.on(cst.Dict)
def backend_table(draft: Draft, node: Any) -> None:
    """`{"cuda": "nccl", "cpu": "gloo"}`: renamed where there is no npu row, extended for the portable target."""
    view = draft.view
    rows = [element for element in node.elements if isinstance(element, cst.DictElement)]
    keys = [literal_value(row.key) for row in rows]
    values = [literal_value(row.value) for row in rows]
    for row, key, value in zip(rows, keys, values, strict=True):
        device_table = key == "cuda" and ("cpu" in keys or value in ("nccl", "NCCL"))
        if not device_table:
            if value == "nccl" and key not in ("cuda", "gpu"):
                _table_value(draft, row)
            continue
        draft.handled.update((row.key, row.value))
        if "npu" in keys:
            continue  # a second key "npu" would win over the row that is there
        new_key = view.source(row.key).replace("cuda", "npu")
        edits: list[tuple[Span, Any]] = [(view.span(row.key), new_key)]
        if value in ("nccl", "NCCL"):
            new_value = view.source(row.value).replace("nccl", "hccl").replace("NCCL", "HCCL")
            if draft.portable:
                start = view.span(row.key).start
                draft.change(
                    "M310", row.key, "NPUs get a row of their own", (Span(start, start), f"{new_key}: {new_value}, ")
                )
                continue
            draft.change("M310", row.key, "the row of the NPU", *edits, (view.span(row.value), new_value))
        elif draft.portable:
            draft.report("M310", row.key, "the table has a row for cuda and none for npu", "add a row for npu")
        else:
            draft.change("M310", row.key, "the row of the NPU", *edits, kind=FixKind.UNSAFE)


def _table_value(draft: Draft, row: Any) -> None:
    if "backend" in (literal_value(row.key) or "").lower():
        source = draft.view.source(row.value)
        draft.handled.add(row.value)
        if draft.portable:
            draft.replace("M301", row.value, "the backend of the device that is there", COLLECTIVE_BACKEND, needs=NEEDS)
        else:
            draft.replace("M301", row.value, "NPUs communicate over HCCL", source.replace("nccl", "hccl"))


@FAMILY.on(cst.Call)
def nccl_available(draft: Draft, node: Any) -> None:
    """`dist.is_nccl_available()` is False on the CPU build of PyTorch that torch_npu stands on."""
    view = draft.view
    if node in draft.handled or "torch.distributed.is_nccl_available" not in view.names(node.func):
        return
    torch = draft.state["torch"]
    why = "False on the build of PyTorch that torch_npu stands on"
    if draft.portable:
        draft.replace("M302", node, why, f"{torch}.distributed.is_backend_available({COLLECTIVE_BACKEND})", needs=NEEDS)
    elif isinstance(node.func, cst.Attribute):
        draft.change("M302", node, why, (view.span(node.func.attr), "is_hccl_available"))
    else:
        draft.replace("M302", node, why, f'{torch}.distributed.is_backend_available("hccl")', needs=("torch",))


@FAMILY.on(cst.Call)
def process_group(draft: Draft, node: Any) -> None:
    """`init_process_group(init_method="tcp://...")`."""
    if draft.view.name(node.func) != "torch.distributed.init_process_group":
        return
    method = argument(node, "init_method", 1)
    if method is None or (literal_value(method.value) or "").startswith("env://"):
        return
    text = literal_value(method.value)
    if text is None and not isinstance(
        method.value, cst.Name | cst.Attribute | cst.FormattedString | cst.BinaryOperation
    ):
        return
    if isinstance(method.value, cst.Name) and method.value.value == "None":
        return
    draft.report(
        "M304",
        method,
        "HCCL is set up from the environment; tcp:// and file:// are reported to fail on some versions",
        "start with torchrun and leave init_method out, with MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE set",
        hint=True,
    )


@FAMILY.on(cst.Attribute, cst.Name)
def nccl_class(draft: Draft, node: Any) -> None:
    """ProcessGroupNCCL and its options."""
    names = draft.view.names(node)
    if any(name.startswith("torch.") and name.endswith(".ProcessGroupNCCL") for name in names):
        draft.report(
            "M305",
            node,
            "the class of the NCCL backend",
            "torch_npu._C._distributed_c10d.ProcessGroupHCCL has Options of its own; it is private, so prefer backend names",
        )
