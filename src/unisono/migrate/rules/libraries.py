"""M901 to M909, M917: libraries, extensions and tools that exist for CUDA only."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst
from libcst.helpers import get_full_name_for_node

from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.knowledge import libraries
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.removal import imported_module
from unisono.migrate.rules.shared import is_use
from unisono.migrate.syntax import literal_value

FAMILY = Family(
    RuleInfo("M901", "Horovod", FixKind.MANUAL),
    RuleInfo("M902", "NVIDIA DALI", FixKind.MANUAL),
    RuleInfo("M903", "asking the GPU's driver", FixKind.MANUAL),
    RuleInfo("M904", "CUDA extensions", FixKind.MANUAL),
    RuleInfo("M905", "attention kernels of other packages", FixKind.MANUAL),
    RuleInfo("M906", "Triton", FixKind.MANUAL),
    RuleInfo("M907", "a library that is CUDA code", FixKind.MANUAL),
    RuleInfo("M908", "faiss", FixKind.MANUAL),
    RuleInfo("M909", "nvidia-smi in a command", FixKind.MANUAL),
    RuleInfo("M917", "operators of torchvision.ops", FixKind.MANUAL),
)

EXTENSIONS = {"CUDAExtension", "load", "load_inline", "BuildExtension", "CUDA_HOME"}
DETECTION = {
    "nms",
    "batched_nms",
    "roi_align",
    "roi_pool",
    "ps_roi_align",
    "ps_roi_pool",
    "deform_conv2d",
    "RoIAlign",
    "RoIPool",
    "DeformConv2d",
}
HINTS = {"M906", "M908"}


def _library(name: str) -> tuple[str, str, str] | None:
    """(finding code, advice, the library's own name) for a dotted name that belongs to one."""
    table = libraries()
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in table:
            library = ".".join(parts[:length])
            return (*table[library], library)
    return None


@FAMILY.on(cst.Import)
def plain_import(draft: Draft, node: Any) -> None:
    """`import horovod.torch as hvd`."""
    for alias in node.names:
        _imported(draft, alias, get_full_name_for_node(alias.name) or "")


@FAMILY.on(cst.ImportFrom)
def from_import(draft: Draft, node: Any) -> None:
    """`from nvidia.dali import pipeline`."""
    module = imported_module(node)
    if not module or isinstance(node.names, cst.ImportStar):
        if module:
            _imported(draft, node, module)
        return
    for alias in node.names:
        name = f"{module}.{alias.name.value}"
        if _library(name) is not None:
            _imported(draft, node, name)
            return


def _imported(draft: Draft, node: Any, name: str) -> None:
    found = _library(name)
    if found is not None:
        draft.report(found[0], node, f"{found[2]} does not run on NPUs", found[1])


@FAMILY.on(cst.Attribute, cst.Name)
def uses(draft: Draft, node: Any) -> None:
    """Uses of those libraries, extension builders, and detection operators."""
    view = draft.view
    if not is_use(view, node):
        return
    for name in view.names(node):
        if name.startswith("torch.utils.cpp_extension."):
            last = name.rpartition(".")[2]
            if last in EXTENSIONS:
                draft.report(
                    "M904",
                    node,
                    "CUDA sources are compiled for GPUs",
                    "torch operators in its place, or an Ascend C extension (torch_npu.utils.cpp_extension.NpuExtension)",
                )
        elif name.startswith("torchvision.ops.") and name.rpartition(".")[2] in DETECTION:
            draft.report(
                "M917",
                node,
                "torchvision's kernels for it are CPU and CUDA code",
                "the torchvision_npu package has NPU kernels",
                hint=True,
            )
        elif name == "torch.utils._triton.has_triton":
            draft.report("M906", node, "it asks for Triton on a GPU", "False, unless triton-ascend is installed")
        elif (found := _library(name)) is not None:
            draft.report(found[0], node, f"{found[2]} does not run on NPUs", found[1])


@FAMILY.on(cst.SimpleString, cst.FormattedString)
def commands(draft: Draft, node: Any) -> None:
    """nvidia-smi in a command that the program starts."""
    view = draft.view
    if "nvidia-smi" not in (source := view.source(node)):
        return
    text = literal_value(node) if isinstance(node, cst.SimpleString) else source
    parent = view.parent(node)
    if text is None or isinstance(parent, cst.Expr | cst.ConcatenatedString):
        return
    if re.match(r"""^[frFR]*['"]*\s*(sudo )?nvidia-smi""", source):
        draft.report(
            "M909",
            node,
            "there is no nvidia-smi beside NPUs, and the output of npu-smi is laid out differently",
            "npu-smi info",
        )
