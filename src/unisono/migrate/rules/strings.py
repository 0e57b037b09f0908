"""M1: string literals that name a device, told apart from strings that only hold the word.

A literal counts when it is exactly "cuda" or "cuda:<number>" (or a format of that), and stands where a device is
expected. Texts for people, file names, flags and keys are data and stay. What cannot be told is reported.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Any

import libcst as cst

from unisono.migrate.edits import Span
from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.shared import ACCELERATOR, DEVICE_WORD, is_binding, last_name, speaks_of_device
from unisono.migrate.syntax import literal_value

FAMILY = Family(
    RuleInfo("M104", "a device string", FixKind.SAFE),
    RuleInfo("M105", "a device string put together by format", FixKind.SAFE),
    RuleInfo("M109", 'the string "cuda" where it is not certain that it names a device', FixKind.MANUAL),
    RuleInfo("M111", "a list of device names", FixKind.SAFE),
    RuleInfo("M403", "the device of torch.amp.GradScaler", FixKind.SAFE),
    RuleInfo("M404", "the device of torch.autocast", FixKind.SAFE),
    RuleInfo("M604", "map_location", FixKind.SAFE),
    RuleInfo("M605", "DataLoader(pin_memory_device=...)", FixKind.SAFE),
    RuleInfo("M309", "the device of a device mesh", FixKind.SAFE),
)

EXACT = re.compile(r"cuda(:\d+)?")
FORMATTED = re.compile(r"cuda:(%[dsi]|\{[^{}]*\})?")

# Keyword to code; the value of such a keyword is a device whatever the function.
KEYWORDS = {
    "device": "M104", "device_type": "M104", "map_location": "M604", "pin_memory_device": "M605", "dev": "M104",
    "devices": "M104", "default_device": "M104", "target_device": "M104",
}  # fmt: skip
# Functions whose first argument is a device or a device type.
FIRST_ARGUMENT = {
    "torch.device": "M104", "torch.set_default_device": "M104", "torch.get_device_module": "M104", "torch.Generator": "M104",
    "torch.Event": "M104", "torch.Stream": "M104", "torch.autocast": "M404", "torch.amp.autocast": "M404",
    "torch.amp.GradScaler": "M403", "torch.GradScaler": "M403", "torch.is_autocast_enabled": "M404",
    "torch.get_autocast_dtype": "M404", "torch.set_autocast_dtype": "M404", "torch.set_autocast_enabled": "M404",
    "torch.distributed.init_device_mesh": "M309", "torch.distributed.device_mesh.init_device_mesh": "M309",
    "torch.distributed.DeviceMesh": "M309", "torch.distributed.device_mesh.DeviceMesh": "M309",
    "torch.amp.custom_fwd": "M404", "torch.amp.custom_bwd": "M404",
}  # fmt: skip
TEXT_FUNCTIONS = {
    "print", "debug", "info", "warning", "warn", "error", "exception", "critical", "log", "write", "format_exc", "join",
    "get", "pop", "setdefault", "hasattr", "delattr", "setattr", "open", "Path", "compile", "search", "match", "sub", "replace",
    "add_argument_group", "add_parser", "mark", "skip", "skipif", "NotImplementedError", "ValueError", "RuntimeError", "KeyError",
    "AssertionError", "TypeError", "Exception", "find", "index", "count", "add_scalar", "remove", "discard", "environ", "getenv",
}  # fmt: skip
DEVICE_NAMES = {"cpu", "mps", "xpu", "npu", "gpu", "auto", "hpu", "mlu", "musa", "meta", "tpu", "cuda"}


class Meaning(Enum):
    """What a string literal is, by its place."""

    DEVICE = auto()
    DATA = auto()
    COMPARED = auto()
    CHOICES = auto()
    UNKNOWN = auto()


@FAMILY.on(cst.SimpleString)
def device_string(draft: Draft, node: Any) -> None:
    """ "cuda", "cuda:0"."""
    text = literal_value(node)
    if text is None or node in draft.handled:
        return
    if not EXACT.fullmatch(text):
        _formatted(draft, node, text)
        return
    meaning, code = classify(draft, node)
    if meaning is Meaning.UNKNOWN and ":" in text:
        meaning = Meaning.DEVICE  # "cuda:1" has no other meaning
    if meaning is Meaning.DEVICE:
        _rewrite(draft, node, text, code)
    elif meaning is Meaning.CHOICES:
        _extend_choices(draft, node)
    elif meaning is Meaning.UNKNOWN:
        new = ACCELERATOR if draft.portable else '"npu"'
        draft.report("M109", node, "nothing here says whether this names a device", f"if it does, write {new}")


def _rewrite(draft: Draft, node: Any, text: str, code: str) -> None:
    source = draft.view.source(node)
    if not draft.portable:
        draft.replace(code, node, "the device type is npu", source.replace("cuda", "npu", 1))
        return
    why = "the device that is there, named by a constant"
    if text == "cuda":
        draft.replace(code, node, why, ACCELERATOR, needs=(ACCELERATOR,))
    else:
        quote = node.quote
        draft.replace(code, node, why, f"f{quote}{{{ACCELERATOR}}}{text[4:]}{quote}", needs=(ACCELERATOR,))


def _extend_choices(draft: Draft, node: Any) -> None:
    if draft.portable:
        span = draft.view.span(node)
        draft.change(
            "M111",
            node,
            "npu joins the devices to choose from",
            (Span(span.start, span.start), f"{node.quote}npu{node.quote}, "),
        )
    else:
        draft.replace("M111", node, "the device type is npu", draft.view.source(node).replace("cuda", "npu", 1))


def classify(draft: Draft, node: Any) -> tuple[Meaning, str]:
    """What the literal means, and the code of the finding when it is a device."""
    view = draft.view
    inner, parent = node, view.parent(node)
    while isinstance(parent, cst.IfExp | cst.BooleanOperation) and not (
        isinstance(parent, cst.IfExp) and parent.test is inner
    ):
        inner, parent = parent, view.parent(parent)
    if isinstance(parent, cst.Arg):
        return _in_argument(draft, parent)
    if isinstance(parent, cst.Comparison | cst.ComparisonTarget):
        return Meaning.COMPARED, "M106"
    if isinstance(parent, cst.Element):
        return _in_sequence(draft, inner, parent)
    if isinstance(parent, cst.DictElement):
        return _in_dict(draft, inner, parent)
    if isinstance(parent, cst.Param):
        return _by_word(parent.name.value)
    if isinstance(parent, cst.Assign):
        return _assigned(draft, parent)
    if isinstance(parent, cst.AnnAssign):
        return _by_word(last_name(parent.target))
    if isinstance(parent, cst.Return):
        function = view.first_ancestor(parent, cst.FunctionDef)
        return _by_word(function.name.value if function is not None else "")
    if isinstance(
        parent, cst.Index | cst.Expr | cst.FormattedStringExpression | cst.ConcatenatedString | cst.Raise | cst.Assert
    ):
        return Meaning.DATA, ""
    if isinstance(parent, cst.Attribute):
        return Meaning.DATA, ""  # "cuda".upper() and the like
    return Meaning.UNKNOWN, "M104"


def _by_word(word: str) -> tuple[Meaning, str]:
    return (Meaning.DEVICE if DEVICE_WORD.search(word) else Meaning.UNKNOWN), "M104"


def _in_argument(draft: Draft, arg: Any) -> tuple[Meaning, str]:
    view = draft.view
    call = view.parent(arg)
    if not isinstance(call, cst.Call):
        return Meaning.UNKNOWN, "M104"
    function = last_name(call.func)
    keyword = arg.keyword.value if arg.keyword is not None else None
    if function == "add_argument" or function == "option":
        return _in_add_argument(view, call, keyword)
    if keyword is not None:
        if keyword in KEYWORDS:
            qualified = view.name(call.func) or ""
            return Meaning.DEVICE, FIRST_ARGUMENT.get(qualified, KEYWORDS[keyword])
        return (
            _by_word(keyword)
            if keyword not in ("help", "description", "msg", "message", "reason", "name")
            else (Meaning.DATA, "")
        )
    index = list(call.args).index(arg)
    if function == "getattr":
        if index == 2:
            return _by_word(literal_value(call.args[1].value) or "")
        return Meaning.DATA, ""  # the dynamic family looks at getattr(torch, "cuda")
    if function == "get" and index == 1:
        return _by_word(literal_value(call.args[0].value) or "")
    qualified = view.name(call.func) or ""
    if index == 0 and qualified in FIRST_ARGUMENT:
        return Meaning.DEVICE, FIRST_ARGUMENT[qualified]
    if qualified == "torch.load" and index == 1:
        return Meaning.DEVICE, "M604"
    if qualified.startswith("torch.cuda.") or qualified in ("torch.UntypedStorage", "torch.FloatTensor"):
        return Meaning.DEVICE, "M104"
    if isinstance(call.func, cst.Attribute) and function in (
        "to",
        "to_empty",
        "type_as",
        "cuda",
        "pin_memory",
        "set_device",
        "synchronize",
    ):
        return Meaning.DEVICE, "M104"
    if function in TEXT_FUNCTIONS or function.startswith(("assert", "log")):
        return Meaning.DATA, ""
    if DEVICE_WORD.search(function):
        return Meaning.DEVICE, "M104"
    return Meaning.UNKNOWN, "M104"


def _in_add_argument(view: Any, call: Any, keyword: str | None) -> tuple[Meaning, str]:
    if keyword != "default":
        return Meaning.DATA, ""
    flags = " ".join(filter(None, (literal_value(arg.value) for arg in call.args if arg.keyword is None)))
    return _by_word(flags.replace("-", "_"))


def _in_sequence(draft: Draft, inner: Any, element: Any) -> tuple[Meaning, str]:
    view = draft.view
    sequence = view.parent(element)
    values = [literal_value(item.value) for item in sequence.elements if isinstance(item, cst.Element)]
    parent = view.parent(sequence)
    if isinstance(parent, cst.ComparisonTarget):
        return Meaning.COMPARED, "M106"
    if "npu" in values:
        return Meaning.DATA, ""  # it names both already
    named = [value for value in values if value is not None]
    known = len(named) > 1 and all(value.partition(":")[0] in DEVICE_NAMES for value in named)
    keyword = parent.keyword.value if isinstance(parent, cst.Arg) and parent.keyword is not None else ""
    if known or (keyword == "choices" and set(named) & (DEVICE_NAMES - {"cuda"})):
        return Meaning.CHOICES, "M111"
    if keyword and DEVICE_WORD.search(keyword):
        return Meaning.CHOICES, "M111"
    if isinstance(parent, cst.Assign) and DEVICE_WORD.search(last_name(parent.targets[0].target)):
        return Meaning.CHOICES, "M111"
    if isinstance(parent, cst.Arg) and last_name(view.parent(parent).func) in ("parametrize",):
        return Meaning.CHOICES, "M111"
    return Meaning.UNKNOWN, "M111"


def _in_dict(draft: Draft, inner: Any, element: Any) -> tuple[Meaning, str]:
    view = draft.view
    table = view.parent(element)
    keys = [literal_value(item.key) for item in table.elements if isinstance(item, cst.DictElement)]
    if element.key is inner:
        if "npu" in keys:
            return Meaning.DATA, ""
        values = [literal_value(item.value) for item in table.elements if isinstance(item, cst.DictElement)]
        if any(value in ("nccl", "gloo", "hccl") for value in values) or "cpu" in keys:
            return Meaning.DATA, "M111"  # the distributed family rewrites tables of devices
        return Meaning.UNKNOWN, "M104"
    return _by_word(literal_value(element.key) or "")


def _assigned(draft: Draft, assign: Any) -> tuple[Meaning, str]:
    target = assign.targets[0].target
    meaning, code = _by_word(last_name(target))
    if meaning is Meaning.DEVICE or not isinstance(target, cst.Name):
        return meaning, code
    for access in draft.view.accesses(target):
        if is_binding(draft.view, access):
            continue
        parent = draft.view.parent(access)
        if isinstance(parent, cst.Arg) and _in_argument(draft, parent)[0] is Meaning.DEVICE:
            return Meaning.DEVICE, "M104"
    return Meaning.UNKNOWN, code


# --- put together by format --------------------------------------------------------------------------------------


def _formatted(draft: Draft, node: Any, text: str) -> None:
    view = draft.view
    if not FORMATTED.fullmatch(text):
        return
    parent = view.parent(node)
    source = view.source(node)
    kind = ""
    if isinstance(parent, cst.Attribute) and parent.attr.value == "format" and "{" in text:
        kind = "format"
    elif isinstance(parent, cst.BinaryOperation) and parent.left is node:
        kind = (
            "%"
            if isinstance(parent.operator, cst.Modulo) and "%" in text
            else "+"
            if isinstance(parent.operator, cst.Add)
            else ""
        )
    elif text == "cuda:":
        return  # startswith("cuda:") is a comparison
    if not kind:
        draft.report(
            "M109",
            node,
            "a format of a device that is filled in elsewhere",
            f"write {source.replace('cuda', 'npu', 1)}",
        )
        return
    why = "the device type is npu, before the number is filled in"
    if not draft.portable:
        draft.replace("M105", node, why, source.replace("cuda", "npu", 1))
        return
    why = "the device that is there, before the number is filled in"
    quote, rest = node.quote, text[4:]
    if kind == "+":
        draft.replace("M105", node, why, f"{ACCELERATOR} + {quote}{rest}{quote}", needs=(ACCELERATOR,))
    elif kind == "%":
        right = parent.right
        items = (
            [view.outer_span(element.value) for element in right.elements]
            if isinstance(right, cst.Tuple)
            else [view.outer_span(right)]
        )
        parts: list[Any] = [f"{quote}%s{rest}{quote} % ({ACCELERATOR}"]
        for item in items:
            parts += [", ", item]
        draft.change(
            "M105",
            node,
            why,
            (view.span(parent), (*parts, ")")),
            needs=(ACCELERATOR,),
        )
    else:
        fields = rest[1:]
        draft.replace("M105", node, why, f"({ACCELERATOR} + {quote}:{fields}{quote})", needs=(ACCELERATOR,))


@FAMILY.on(cst.FormattedString)
def device_f_string(draft: Draft, node: Any) -> None:
    """f"cuda:{index}"."""
    view = draft.view
    parts = node.parts
    if not parts or not isinstance(parts[0], cst.FormattedStringText):
        return
    first = parts[0].value
    whole = first == "cuda:" and len(parts) == 2 and isinstance(parts[1], cst.FormattedStringExpression)
    if not whole:
        return
    parent = view.parent(node)
    if isinstance(parent, cst.Arg) and last_name(view.parent(parent).func) in (
        "print",
        "info",
        "debug",
        "warning",
        "write",
    ):
        return
    start = view.span(parts[0]).start
    word = Span(start, start + len("cuda"))
    if draft.portable:
        draft.change("M105", node, "the device that is there", (word, f"{{{ACCELERATOR}}}"), needs=(ACCELERATOR,))
    else:
        draft.change("M105", node, "the device type is npu", (word, "npu"))


def is_device_expression(draft: Draft, node: Any) -> bool:
    """True when the expression speaks of a device; see `speaks_of_device`."""
    return speaks_of_device(draft.view, node)
