"""M1: `.cuda()` in all its forms, `.is_cuda`, default tensor types."""

from __future__ import annotations

from typing import Any

import libcst as cst

from unisono.migrate.edits import Part, Span
from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.shared import ACCELERATOR, DEVICE_FUNCTION, imports_of, is_maximal
from unisono.migrate.syntax import ModuleView, argument, literal_value

FAMILY = Family(
    RuleInfo("M102", "a call of .cuda()", FixKind.SAFE),
    RuleInfo("M103", "the attribute .is_cuda", FixKind.SAFE),
    RuleInfo("M110", "a .cuda that may be the program's own", FixKind.MANUAL),
    RuleInfo("M112", "the default tensor type", FixKind.UNSAFE),
    RuleInfo("M113", "a CUDA tensor type named by a string", FixKind.UNSAFE),
)

TENSOR_CLASSES = {"torch.Tensor", "torch.nn.Module", "torch.nn.modules.module.Module"}
DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
    "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool",
}  # fmt: skip


def _start(draft: Draft) -> None:
    classes = {}
    for node in draft.view.nodes:
        if isinstance(node, cst.ClassDef) and any(
            isinstance(member, cst.FunctionDef) and member.name.value == "cuda" for member in node.body.body
        ):
            classes[node.name.value] = node
    draft.state["classes_with_cuda"] = classes
    # `self.is_cuda = ...` makes it the program's own attribute.
    draft.state["own_is_cuda"] = {
        draft.view.source(node.target.value)
        for node in draft.view.nodes
        if isinstance(node, cst.AssignTarget)
        and isinstance(node.target, cst.Attribute)
        and node.target.attr.value == "is_cuda"
    }


FAMILY.starts.append(_start)


@FAMILY.on(cst.Call)
def cuda_call(draft: Draft, node: Any) -> None:
    """`x.cuda()`, `x.cuda(i)`, `x.cuda(device=d, non_blocking=True)`, on any receiver."""
    view = draft.view
    if not isinstance(node.func, cst.Attribute) or node.func.attr.value != "cuda":
        return
    if any(name == "torch.cuda" for name in view.names(node.func)) or _function_of_module(draft, node.func.value):
        return
    if _own_method(draft, node):
        draft.report(
            "M110",
            node,
            "this file defines a cuda() method, and the receiver may be of that class",
            "migrate that method by hand, then this call",
        )
        return
    draft.handled.add(node.func)
    if not draft.portable:
        draft.change(
            "M102", node, "tensors and modules have .npu() with the same arguments", (view.span(node.func.attr), "npu")
        )
        return
    _to_accelerator(draft, node)


def _function_of_module(draft: Draft, receiver: Any) -> bool:
    """True for `helpers.cuda(x)` where `import helpers` binds a module: only looks like the method."""
    if not isinstance(receiver, cst.Name):
        return False
    return any(isinstance(found.node, cst.Import) for found in imports_of(draft, receiver))


def _own_method(draft: Draft, node: Any) -> bool:
    classes = draft.state["classes_with_cuda"]
    if not classes:
        return False
    view: ModuleView = draft.view
    receiver = node.func.value
    if isinstance(receiver, cst.Name):
        if receiver.value in ("self", "cls"):
            owner = view.first_ancestor(node, cst.ClassDef)
            return owner is not None and owner.name.value in classes
        receiver = view.assigned_value(receiver) or receiver
    return isinstance(receiver, cst.Call) and isinstance(receiver.func, cst.Name) and receiver.func.value in classes


def _to_accelerator(draft: Draft, node: Any) -> None:
    view = draft.view
    device = argument(node, "device", 0)
    value = device.value if device is not None else None
    rest = [arg for arg in node.args if arg is not device]
    needs: tuple[str, ...] = (ACCELERATOR,)
    first: tuple[Part, ...]
    if value is None or (isinstance(value, cst.Name) and value.value == "None"):
        first = (ACCELERATOR,)
    elif isinstance(value, cst.Integer):
        first = (f'f"{{{ACCELERATOR}}}:{value.value}"',)
    else:
        first = (f"{DEVICE_FUNCTION}(", view.outer_span(value), ")")
        needs = (ACCELERATOR, DEVICE_FUNCTION)
    parts: list[Part] = ["to(", *first]
    names = ("non_blocking", "memory_format")
    for index, arg in enumerate(rest):
        keyword = arg.keyword.value if arg.keyword is not None else names[index] if index < len(names) else ""
        parts += [", ", arg.star, f"{keyword}=" if keyword and not arg.star else "", view.outer_span(arg.value)]
    parts.append(")")
    span = Span(view.span(node.func.attr).start, view.span(node).end)
    draft.change(
        "M102", node, ".to() moves to the device that is there", (span, tuple(p for p in parts if p != "")), needs=needs
    )


@FAMILY.on(cst.Attribute)
def attributes(draft: Draft, node: Any) -> None:
    """`.is_cuda`, and `.cuda` that is handed on without being called."""
    view = draft.view
    if node.attr.value == "is_cuda" and not view.name(node, "torch"):
        if view.source(node.value) in draft.state["own_is_cuda"]:
            return
        if draft.portable:
            receiver = view.outer_span(node.value)
            inside = isinstance(
                view.parent(node), cst.Comparison | cst.ComparisonTarget | cst.Attribute | cst.BinaryOperation
            )
            start, end = ("(", ")") if inside and not node.lpar else ("", "")
            draft.change(
                "M103",
                node,
                "true on a GPU and on an NPU",
                (view.span(node), (start, receiver, f'.device.type in ("cuda", "npu"){end}')),
            )
        else:
            draft.change("M103", node, "tensors on an NPU answer to is_npu", (view.span(node.attr), "is_npu"))
    elif node.attr.value == "cuda" and node not in draft.handled and is_maximal(view, node):
        name = view.name(node)
        if name in {f"{owner}.cuda" for owner in TENSOR_CLASSES}:
            if draft.portable:
                draft.report("M110", node, "the method is handed on", f"lambda tensor: tensor.to({ACCELERATOR})")
            else:
                draft.change("M102", node, "tensors and modules have .npu()", (view.span(node.attr), "npu"))


@FAMILY.on(cst.FunctionDef)
def own_cuda_method(draft: Draft, node: Any) -> None:
    """A method called cuda that the program defines itself."""
    if node.name.value == "cuda" and isinstance(draft.view.first_ancestor(node, cst.ClassDef), cst.ClassDef):
        draft.report(
            "M110", node.name, "a cuda() method of the program's own", "rename it, or give it a device argument"
        )


@FAMILY.on(cst.Call)
def default_tensor_type(draft: Draft, node: Any) -> None:
    """`torch.set_default_tensor_type("torch.cuda.FloatTensor")` fails with an NPU type."""
    view = draft.view
    if view.name(node.func) != "torch.set_default_tensor_type" or not node.args:
        return
    value = node.args[0].value
    text = literal_value(value) or view.name(value) or ""
    kind = text.removeprefix("torch.cuda.").removesuffix("Tensor")
    if not text.startswith("torch.cuda.") or kind not in DTYPES:
        return
    for inner in (value, *_walk(value)):
        draft.handled.add(inner)
    torch = draft.state["torch"]
    device = ACCELERATOR if draft.portable else '"npu"'
    indent = view.indent_of(node)
    new = f"{torch}.set_default_device({device})"
    statement = view.parent(node)
    if kind == "Float" or not isinstance(statement, cst.Expr):
        text = new
    else:
        text = f"{new}{view.newline}{indent}{torch}.set_default_dtype({torch}.{DTYPES[kind]})"
    draft.replace(
        "M112",
        node,
        "an NPU type is refused there; the default device and the default dtype are set apart now",
        text,
        kind=FixKind.UNSAFE,
        needs=(ACCELERATOR,) if draft.portable else (),
    )


def _walk(node: Any) -> list[Any]:
    found = []
    pending = list(node.children)
    while pending:
        child = pending.pop()
        found.append(child)
        pending.extend(child.children)
    return found


@FAMILY.on(cst.SimpleString)
def type_string(draft: Draft, node: Any) -> None:
    """`x.type("torch.cuda.FloatTensor")` and comparisons with such names."""
    text = literal_value(node)
    if text is None or node in draft.handled or not text.startswith("torch.cuda."):
        return
    kind = text.removeprefix("torch.cuda.").removesuffix("Tensor")
    view = draft.view
    if (
        kind not in DTYPES
        or not text.endswith("Tensor")
        or not isinstance(view.parent(node), cst.Arg | cst.Comparison | cst.ComparisonTarget | cst.Assign)
    ):
        return
    call = view.parent(view.parent(node))
    if draft.portable:
        if (
            isinstance(call, cst.Call)
            and isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "type"
            and len(call.args) == 1
        ):
            torch = draft.state["torch"]
            span = Span(view.span(call.func.attr).start, view.span(call).end)
            text = f"to({ACCELERATOR}, {torch}.{DTYPES[kind]})"
            draft.change("M113", node, "device and dtype are named apart", (span, text), needs=(ACCELERATOR,))
        else:
            draft.report("M113", node, "the name holds the device", "compare .device.type and .dtype apart")
        return
    draft.replace(
        "M113", node, "the type's name holds the device", view.source(node).replace("torch.cuda.", "torch.npu.", 1)
    )
