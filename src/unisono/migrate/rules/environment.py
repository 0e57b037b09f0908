"""M7: environment variables of CUDA and NCCL."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from unisono.migrate.edits import Span
from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.knowledge import Variable, variables
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.shared import ACCELERATOR, last_name
from unisono.migrate.syntax import literal_value

FAMILY = Family(
    RuleInfo("M701", "an environment variable with a counterpart", FixKind.SAFE),
    RuleInfo("M702", "an environment variable whose value is written differently", FixKind.MANUAL),
    RuleInfo("M703", "an environment variable without counterpart", FixKind.MANUAL),
    RuleInfo("M704", "a command line that sets a CUDA variable", FixKind.MANUAL),
)

ACCESS = {"get", "getenv", "putenv", "unsetenv", "setdefault", "pop", "setenv", "delenv"}
COMMANDS = {"system", "popen", "Popen", "run", "call", "check_call", "check_output", "getoutput"}
IN_TEXT = re.compile(r"\b(CUDA_VISIBLE_DEVICES|NCCL_[A-Z_]+|CUDA_LAUNCH_BLOCKING)=")


@FAMILY.on(cst.SimpleString)
def variable_name(draft: Draft, node: Any) -> None:
    """A literal that is exactly the name of a variable, where names are looked up or set."""
    text = literal_value(node)
    if text is None:
        return
    variable = variables().get(text)
    if variable is None and re.fullmatch(r"NCCL_[A-Z0-9_]+", text):
        variable = Variable(text, "", "manual", "no counterpart is known: look for it in HCCL's list of variables")
    if variable is not None and _names_a_variable(draft, node):
        _answer(draft, node, variable)
    elif variable is None:
        _command(draft, node, text)


def _names_a_variable(draft: Draft, node: Any) -> bool:
    view = draft.view
    parent = view.parent(node)
    if isinstance(parent, cst.Index):
        return True
    if isinstance(parent, cst.Arg):
        call = view.parent(parent)
        return isinstance(call, cst.Call) and last_name(call.func) in ACCESS and list(call.args).index(parent) == 0
    if isinstance(parent, cst.DictElement):
        return parent.key is node
    return isinstance(parent, cst.Comparison | cst.Element | cst.Assign | cst.Param)


def _answer(draft: Draft, node: Any, variable: Variable) -> None:
    if variable.kind == "hint":
        draft.report("M703", node, f"{variable.name}: {variable.note}", "leave it or remove it", hint=True)
    elif not variable.npu:
        draft.report("M703", node, f"{variable.name} is not read by HCCL or torch_npu", variable.note)
    elif variable.kind == "manual":
        draft.report("M702", node, f"the counterpart of {variable.name} is {variable.npu}", variable.note)
    elif draft.portable:
        _both(draft, node, variable)
    else:
        kind = FixKind.UNSAFE if variable.kind == "unsafe" else FixKind.SAFE
        draft.replace(
            "M701", node, variable.note, draft.view.source(node).replace(variable.name, variable.npu, 1), kind=kind
        )


def _both(draft: Draft, node: Any, variable: Variable) -> None:
    """Portable code sets both names in one assignment."""
    view = draft.view
    subscript = view.first_ancestor(node, cst.Subscript)
    target = view.parent(subscript) if subscript is not None else None
    assign = view.parent(target)
    if not isinstance(target, cst.AssignTarget) or not isinstance(assign, cst.Assign):
        if variable.npu not in view.text:
            draft.report(
                "M701",
                node,
                f"on NPUs {variable.npu} is read in its place",
                f"look at {variable.npu} too",
                kind=FixKind.MANUAL,
            )
        return
    if any(variable.npu in view.source(other) for other in assign.targets):
        return
    end = view.span(subscript).end
    if variable.name == "CUDA_VISIBLE_DEVICES" and _behind_torch(draft, end):
        draft.report(
            "M702",
            node,
            f"{ACCELERATOR} is asked for at import, and devices hidden after that stay visible",
            "set the variable before torch is imported, or in the environment of the process",
        )
    new = view.source(subscript).replace(variable.name, variable.npu, 1)
    draft.change("M701", node, f"on NPUs {variable.npu} is read in its place", (Span(end, end), f" = {new}"))


def _behind_torch(draft: Draft, offset: int) -> bool:
    return any(
        isinstance(node, cst.ImportAlias)
        and draft.view.source(node).startswith("torch")
        and draft.view.span(node).start < offset
        for node in draft.view.nodes
    )


def _command(draft: Draft, node: Any, text: str) -> None:
    found = IN_TEXT.search(text)
    if found is None:
        return
    call = draft.view.first_ancestor(node, cst.Call)
    if call is not None and last_name(call.func) in COMMANDS:
        variable = variables().get(found.group(1))
        new = variable.npu if variable is not None and variable.npu else "its counterpart"
        draft.report("M704", node, f"the command sets {found.group(1)}", f"set {new}")


@FAMILY.on(cst.Arg)
def keyword_variable(draft: Draft, node: Any) -> None:
    """`dict(os.environ, CUDA_VISIBLE_DEVICES="0")`."""
    if node.keyword is None or (variable := variables().get(node.keyword.value)) is None:
        return
    if variable.kind in ("rename", "unsafe") and not draft.portable:
        kind = FixKind.UNSAFE if variable.kind == "unsafe" else FixKind.SAFE
        draft.replace("M701", node.keyword, variable.note, variable.npu, kind=kind)
    else:
        draft.report("M702", node, f"the counterpart of {variable.name} is {variable.npu or 'missing'}", variable.note)
