"""M207: torch.cuda reached by a name in a string, which a search for torch.cuda does not find."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.knowledge import find_cuda_name
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.shared import ACCELERATOR
from unisono.migrate.syntax import literal_value

FAMILY = Family(
    RuleInfo("M207", "torch.cuda reached by a name in a string", FixKind.UNSAFE),
)


@FAMILY.on(cst.Call)
def by_name(draft: Draft, node: Any) -> None:
    """getattr, hasattr, import_module, eval and exec."""
    view = draft.view
    function = node.func.value if isinstance(node.func, cst.Name) else ""
    if function in ("getattr", "hasattr", "setattr", "delattr") and len(node.args) >= 2:
        _attribute(draft, node, function)
    elif function in ("eval", "exec", "compile") and node.args:
        text = view.source(node.args[0].value)
        if re.search(r"torch\.cuda|\.cuda\(|['\"]cuda", text):
            draft.report(
                "M207", node, "code in a string is not rewritten", "write the new names into the string by hand"
            )
    elif function == "__import__" or "importlib.import_module" in view.names(node.func):
        _module(draft, node)


def _attribute(draft: Draft, node: Any, function: str) -> None:
    view = draft.view
    owner, name = node.args[0].value, literal_value(node.args[1].value)
    owners = view.names(owner)
    if "torch" in owners and name == "cuda":
        draft.handled.add(node.args[1].value)
        if draft.portable:
            if function == "getattr":
                text = f"{draft.state['torch']}.get_device_module({ACCELERATOR})"
                draft.replace("M207", node, "the module of the device that is there", text, needs=(ACCELERATOR,))
            else:
                draft.report(
                    "M207", node, "it asks whether PyTorch was built for CUDA", "torch.accelerator.is_available()"
                )
            return
        literal = node.args[1].value
        draft.replace(
            "M207", literal, "torch.npu is registered by torch_npu", view.source(literal).replace("cuda", "npu", 1)
        )
        return
    if not any(found == "torch.cuda" or found.startswith("torch.cuda.") for found in owners):
        return
    if name is None:
        draft.report(
            "M207",
            node,
            "the name looked up is not in the source",
            "check that torch.npu has each name that can come here",
        )
        return
    entry = find_cuda_name(name)
    if entry is None or not entry.npu:
        draft.report(
            "M207",
            node,
            f"torch.npu has no {name}",
            entry.advice if entry is not None else "give a default, or leave it out",
        )
    elif entry.npu != entry.name and draft.portable:
        draft.report("M207", node, f"torch.npu calls it {entry.npu}", "choose the name by the device that is there")
    elif entry.npu != entry.name:
        literal = node.args[1].value
        draft.replace(
            "M207", literal, f"torch.npu calls it {entry.npu}", view.source(literal).replace(name, entry.npu, 1)
        )


def _module(draft: Draft, node: Any) -> None:
    literal = node.args[0].value if node.args else None
    text = literal_value(literal) or ""
    if text != "torch.cuda" and not text.startswith("torch.cuda."):
        return
    draft.handled.add(literal)
    if draft.portable:
        draft.report("M207", node, "the module is imported by name", f"torch.get_device_module({ACCELERATOR})")
    else:
        draft.replace(
            "M207",
            literal,
            "torch.npu is registered by torch_npu",
            draft.view.source(literal).replace("torch.cuda", "torch.npu", 1),
        )


@FAMILY.on(cst.Subscript)
def module_dict(draft: Draft, node: Any) -> None:
    """`torch.__dict__["cuda"]` and `sys.modules["torch.cuda"]`."""
    view = draft.view
    if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
        return
    literal = node.slice[0].slice.value
    key, owner = literal_value(literal), view.name(node.value)
    if (owner == "torch.__dict__" and key == "cuda") or (
        owner == "sys.modules" and key is not None and key.startswith("torch.cuda")
    ):
        draft.report(
            "M207", node, "torch.cuda is reached through a dictionary", "write torch.npu, or torch.get_device_module()"
        )
