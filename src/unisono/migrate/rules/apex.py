"""M503 to M510: apex's wrappers, optimizers and layers, to what PyTorch has itself. `apex_amp` deals with apex.amp."""

from __future__ import annotations

from typing import Any

import libcst as cst

from unisono.migrate.edits import Part, Span
from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.removal import (
    imported_module,
    imported_name,
    references,
    remove_aliases,
    remove_statement,
    unresolved_names,
)
from unisono.migrate.rules.shared import is_use, mark_rewritten

FAMILY = Family(
    RuleInfo("M503", "DistributedDataParallel of apex", FixKind.SAFE),
    RuleInfo("M504", "SyncBatchNorm of apex", FixKind.SAFE),
    RuleInfo("M505", "fused optimizers of apex", FixKind.UNSAFE),
    RuleInfo("M506", "fused layers of apex", FixKind.UNSAFE),
    RuleInfo("M507", "kernels of apex", FixKind.MANUAL),
    RuleInfo("M510", "an import of apex", FixKind.UNSAFE),
)

# Full name in apex: (code, name under torch, keywords that PyTorch's does not take, positional arguments in common)
PLAIN = {
    "apex.parallel.DistributedDataParallel": ("M503", "nn.parallel.DistributedDataParallel", 1),
    "apex.parallel.convert_syncbn_model": ("M504", "nn.SyncBatchNorm.convert_sync_batchnorm", 1),
    "apex.parallel.SyncBatchNorm": ("M504", "nn.SyncBatchNorm", 5),
    "apex.optimizers.FusedSGD": ("M505", "optim.SGD", 5),
    "apex.optimizers.FusedAdam": ("M505", "optim.AdamW", 2),
    "apex.optimizers.FusedAdagrad": ("M505", "optim.Adagrad", 2),
    "apex.normalization.FusedLayerNorm": ("M506", "nn.LayerNorm", 3),
    "apex.normalization.MixedFusedLayerNorm": ("M506", "nn.LayerNorm", 3),
    "apex.normalization.FusedRMSNorm": ("M506", "nn.RMSNorm", 3),
    "apex.normalization.MixedFusedRMSNorm": ("M506", "nn.RMSNorm", 3),
}
APEX_ONLY = {
    "message_size", "delay_allreduce", "shared_param", "allreduce_trigger_params", "retain_allreduce_buffers",
    "allreduce_always_fp32", "num_allreduce_streams", "allreduce_communicators", "gradient_average",
    "gradient_predivide_factor", "gradient_average_split_factor", "prof", "bias_correction", "adam_w_mode", "set_grad_none",
    "wd_after_momentum", "materialize_master_grads", "adagrad_w_mode", "master_weights", "memory_efficient", "channel_last",
    "fuse_relu",
}  # fmt: skip
WHY = {
    "M503": "PyTorch's own works over every backend; arguments that only apex takes are left out",
    "M504": "torch_npu provides the kernels of PyTorch's own",
    "M505": "PyTorch's own optimizer computes the same update; torch_npu.optim has fused ones",
    "M506": "PyTorch's own layer takes the same arguments",
}
FUSED_ON_NPU = {"FusedLAMB": "torch_npu.optim.NpuFusedLamb", "FusedMixedPrecisionLamb": "torch_npu.optim.NpuFusedLamb"}


@FAMILY.on(cst.Attribute, cst.Name)
def apex_name(draft: Draft, node: Any) -> None:
    """Uses of apex names, however they were imported."""
    view = draft.view
    if not is_use(view, node):
        return
    qualified = next((n for n in sorted(view.names(node)) if n.startswith("apex.")), None)
    if qualified is None or qualified == "apex.amp" or qualified.startswith("apex.amp."):
        return
    known = PLAIN.get(_without_inner_module(qualified))
    if known is None:
        _unknown(draft, node, qualified)
        return
    code, name, common = known
    parent = view.parent(node)
    call = parent if isinstance(parent, cst.Call) and parent.func is node else None
    if call is None and code == "M503" and len(view.names(node)) > 1:
        return
    if call is not None and not _fits(call, common):
        draft.report(
            code,
            node,
            "arguments given by position differ in PyTorch's own",
            f"torch.{name} with its arguments by keyword",
        )
        return
    if call is not None and name == "optim.AdamW":
        name = _adam(draft, call)
    mark_rewritten(draft, node)
    edits: list[tuple[Span, Part]] = [(view.span(node), f"{draft.state['torch']}.{name}")]
    if call is not None:
        edits += _drop_arguments(draft, call)
    draft.change(code, node, WHY[code], *edits)


def _without_inner_module(name: str) -> str:
    """apex.optimizers.fused_adam.FusedAdam and apex.optimizers.FusedAdam are the same class."""
    parts = name.split(".")
    return ".".join([*parts[:2], parts[-1]]) if len(parts) > 3 else name


def _fits(call: Any, common: int) -> bool:
    return sum(arg.keyword is None and not arg.star for arg in call.args) <= common


def _adam(draft: Draft, call: Any) -> str:
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == "adam_w_mode" and draft.view.source(arg.value) == "False":
            return "optim.Adam"
    return "optim.AdamW"


def _drop_arguments(draft: Draft, call: Any) -> list[tuple[Span, Part]]:
    view = draft.view
    edits: list[tuple[Span, Part]] = []
    for index, arg in enumerate(call.args):
        if arg.keyword is None or arg.keyword.value not in APEX_ONLY:
            continue
        if index:
            start = view.outer_span(call.args[index - 1].value).end
            edits.append((Span(start, view.outer_span(arg.value).end), ""))
        else:
            end = view.span(call.args[1]).start if len(call.args) > 1 else view.outer_span(arg.value).end
            edits.append((Span(view.span(arg).start, end), ""))
    return edits


def _unknown(draft: Draft, node: Any, qualified: str) -> None:
    last = qualified.rpartition(".")[2]
    if last in FUSED_ON_NPU:
        draft.report(
            "M505",
            node,
            "apex's optimizer is CUDA code",
            f"{FUSED_ON_NPU[last]}, or an optimizer of torch.optim or timm",
        )
    elif qualified in ("apex.parallel", "apex.optimizers", "apex.normalization"):
        return
    elif "multi_tensor" in qualified:
        draft.report(
            "M507",
            node,
            "apex's kernels are CUDA code",
            "the torch._foreach_ functions, for example torch._foreach_mul_",
        )
    else:
        draft.report(
            "M507",
            node,
            f"{qualified} is CUDA code",
            "write it with torch.nn or torch.optim; there is an Ascend build of apex for a few parts",
        )


def _finish(draft: Draft) -> None:
    rewritten = draft.state.get("rewritten", set())
    for node in draft.view.nodes:
        if (
            isinstance(node, cst.ImportFrom)
            and imported_module(node).split(".")[0] in ("apex", "amp_C")
            and isinstance(node.names, cst.ImportStar)
        ):
            _star(draft, node)
        elif isinstance(node, cst.Import | cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
            _named(draft, node, rewritten)


def _star(draft: Draft, node: Any) -> None:
    if unresolved_names(draft):
        draft.report(
            "M510",
            node,
            "apex is CUDA code, and this import hides which names are used",
            "replace those names, then remove the import",
        )
    else:
        remove_statement(draft, "M510", node, "no name of it is used")


def _named(draft: Draft, node: Any, rewritten: set[Any]) -> None:
    aliases = [a for a in node.names if imported_name(node, a).split(".")[0] in ("apex", "amp_C", "apex_C")]
    gone = {a for a in aliases if all(use in rewritten for use in references(draft, node, a))}
    for alias in aliases:
        if alias not in gone:
            draft.report(
                "M510", alias, "apex is CUDA code", "replace the uses that are reported, then remove the import"
            )
    if gone:
        remove_aliases(draft, "M510", node, gone, "every use of it has been rewritten")


FAMILY.finishes.append(_finish)
