"""M311, M85x: number types and operators that NPUs have limits on."""

from __future__ import annotations

from typing import Any

import libcst as cst

from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.shared import is_use
from unisono.migrate.syntax import argument, literal_value

FAMILY = Family(
    RuleInfo("M311", "a collective on float64", FixKind.UNSAFE),
    RuleInfo("M851", "float64 on the device", FixKind.MANUAL),
    RuleInfo("M852", "int64 on the device", FixKind.MANUAL),
    RuleInfo("M853", "number types and layouts that NPUs lack", FixKind.MANUAL),
    RuleInfo("M854", "operators documented as not supported", FixKind.MANUAL),
)

FLOAT64 = {"torch.float64", "torch.double"}
INT64 = {"torch.int64", "torch.long"}
LACKING = {
    "torch.complex128", "torch.float8_e4m3fn", "torch.float8_e5m2", "torch.quint8", "torch.qint8", "torch.qint32", "torch.quint4x2",
    "torch.sparse_csr", "torch.sparse_csc", "torch.sparse_bsr", "torch.sparse_csr_tensor", "torch.sparse_csc_tensor",
    "torch.sparse_bsr_tensor",
}  # fmt: skip
UNSUPPORTED = {
    "torch.var_mean", "torch.std_mean", "torch.unique_consecutive", "torch.nn.EmbeddingBag", "torch.nn.AvgPool3d",
    "torch.nn.MaxPool3d", "torch.nn.RNN", "torch.nn.Transformer", "torch.vmap", "torch.func.vmap", "torch.func.jvp",
    "torch.func.jacrev", "torch.export.export", "torch.nn.functional.embedding_bag",
}  # fmt: skip
COLLECTIVES = {
    f"torch.distributed.{name}"
    for name in ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_gather_into_tensor")
}


def _start(draft: Draft) -> None:
    """Collectives come behind the tensor they reduce, and decide what is said of its type."""
    for node in draft.view.nodes:
        if isinstance(node, cst.Call):
            _collective_on_float64(draft, node)


FAMILY.starts.append(_start)


def _collective_on_float64(draft: Draft, node: Any) -> None:
    """`t = torch.tensor(..., dtype=torch.float64, device=d); dist.all_reduce(t)`."""
    view = draft.view
    if not node.args or not isinstance(node.args[0].value, cst.Name) or not view.names(node.func) & COLLECTIVES:
        return
    for made in view.assigned_values(node.args[0].value):
        dtype = argument(made, "dtype") if isinstance(made, cst.Call) else None
        if dtype is None or not view.names(dtype.value) & FLOAT64 or dtype.value in draft.handled:
            continue
        draft.handled.add(dtype.value)
        text = f"{draft.state['torch']}.float32"
        draft.replace(
            "M311", dtype.value, "HCCL does not reduce float64; float32 counts exactly up to 16,777,216", text
        )


@FAMILY.on(cst.Attribute, cst.Name)
def number_type(draft: Draft, node: Any) -> None:
    """torch.float64, torch.complex128, torch.sparse_csr and operators."""
    view = draft.view
    if not is_use(view, node):
        return
    names = view.names(node)
    if not any(name.startswith("torch.") for name in names):
        return
    if names & FLOAT64 and node not in draft.handled:
        if _on_device(draft, node):
            draft.report(
                "M851",
                node,
                "many NPU operators have no float64",
                "torch.float32, or do this part on the CPU",
                hint=True,
            )
    elif names & LACKING:
        draft.report(
            "M853", node, "NPUs lack this number type or layout", "float16, bfloat16 or float32, and dense tensors"
        )
    elif names & UNSUPPORTED:
        draft.report(
            "M854",
            node,
            "documented as not supported on NPUs",
            "try it on the simulated NPU and on a card; else do this part on the CPU",
            hint=True,
        )


def _on_device(draft: Draft, node: Any) -> bool:
    """False where the call says that the tensor stays on the CPU."""
    view = draft.view
    call = view.first_ancestor(node, cst.Call)
    device = argument(call, "device") if call is not None else None
    return device is None or literal_value(device.value) != "cpu"


@FAMILY.on(cst.Call)
def conversions(draft: Draft, node: Any) -> None:
    """`.double()`, and `.long()` once a file."""
    if not isinstance(node.func, cst.Attribute) or node.args or draft.view.names(node.func):
        return
    name = node.func.attr.value
    if name == "double":
        draft.report(
            "M851", node, "many NPU operators have no float64", ".float(), or do this part on the CPU", hint=True
        )
    elif name == "long" and not draft.state.get("int64"):
        draft.state["int64"] = True
        draft.report(
            "M852",
            node,
            "some NPU operators want int32 where PyTorch takes int64",
            "leave it; .int() where an operator refuses int64",
            hint=True,
        )
