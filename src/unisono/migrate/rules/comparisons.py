"""M106, M107, M303: branches that ask for the device or the backend by its name.

They fail in silence when missed: the branch is not taken, and nothing moves to the device.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from unisono.migrate.edits import Part, Span
from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.shared import ACCELERATOR, BACKEND_WORD, last_name, mark_rewritten, speaks_of_device
from unisono.migrate.rules.strings import DEVICE_NAMES, EXACT
from unisono.migrate.syntax import literal_value

FAMILY = Family(
    RuleInfo("M106", "a comparison with a device's name", FixKind.SAFE),
    RuleInfo("M107", "the choice of a device by is_available()", FixKind.SAFE),
    RuleInfo("M303", "a comparison with a backend's name", FixKind.SAFE),
)

COUNTERPART = {"cuda": "npu", "nccl": "hccl", "NCCL": "HCCL"}
WHY = "the branch would be left out in silence"
KEYS = re.compile(r"(^|_)(key|k|name|module|mode|word|token|tag|line|text|path)s?$", re.IGNORECASE)


@FAMILY.on(cst.Comparison)
def comparison(draft: Draft, node: Any) -> None:
    """`device.type == "cuda"`, `backend in ["nccl", "gloo"]`, `"cuda" in str(device)`."""
    if len(node.comparisons) != 1:
        return
    target = node.comparisons[0]
    operator, left, right = target.operator, node.left, target.comparator
    if isinstance(operator, cst.Equal | cst.NotEqual):
        literal, other = (right, left) if _word(right) else (left, right)
        if _word(literal):
            _equality(draft, node, operator, literal, other)
    elif isinstance(operator, cst.In | cst.NotIn):
        if isinstance(right, cst.Tuple | cst.List | cst.Set):
            _membership(draft, node, left, right)
        elif _word(left):
            _containment(draft, node, operator, left, right)


def _word(node: Any) -> str:
    """ "cuda", "nccl" or "" by what the literal starts with."""
    text = literal_value(node) or ""
    if EXACT.fullmatch(text):
        return "cuda"
    return text if text in COUNTERPART else ""


def _code(word: str) -> str:
    return "M106" if word == "cuda" else "M303"


def _certain(draft: Draft, word: str, other: Any) -> bool:
    if word == "cuda":
        return speaks_of_device(draft.view, other)
    return True


def _equality(draft: Draft, node: Any, operator: Any, literal: Any, other: Any) -> None:
    view = draft.view
    word = _word(literal)
    draft.handled.add(literal)
    text = literal_value(literal) or ""
    if last_name(other) == ACCELERATOR or _names_it_already(draft, node, COUNTERPART[word]):
        return
    if not _certain(draft, word, other):
        _uncertain(draft, node, word, other)
        return
    if _fused(draft, node):
        advice = "False on NPUs; torch_npu.optim.NpuFusedAdamW and its kind are the fused optimizers there"
        draft.report(
            "M812", node, "the fused kernels are CUDA's, so this has to stay a question for cuda", advice, hint=True
        )
        return
    if not draft.portable:
        draft.replace(_code(word), literal, WHY, view.source(literal).replace(word, COUNTERPART[word], 1))
        return
    if ":" in text:
        draft.replace(
            "M106", literal, WHY, f"f{literal.quote}{{{ACCELERATOR}}}{text[4:]}{literal.quote}", needs=(ACCELERATOR,)
        )
        return
    quote = literal.quote
    inside = "in" if isinstance(operator, cst.Equal) else "not in"
    pair = f" {inside} ({quote}{word}{quote}, {quote}{COUNTERPART[word]}{quote})"
    draft.change(_code(word), node, WHY, (view.span(node), (_text_form(draft, word, other), pair)))


def _text_form(draft: Draft, word: str, other: Any) -> Part:
    """What `in (...)` can be asked of: a torch.device equals "cuda" as a text does, and tuples compare by ==."""
    return draft.view.outer_span(other)


def _names_it_already(draft: Draft, node: Any, word: str) -> bool:
    """True for `x == "cuda" or x == "npu"`: both devices are asked for."""
    parent = draft.view.parent(node)
    return isinstance(parent, cst.BooleanOperation) and f'"{word}"' in draft.view.source(parent).replace("'", '"')


def _fused(draft: Draft, node: Any) -> bool:
    """True in `use_fused = ... and device_type == "cuda"`."""
    assign = draft.view.first_ancestor(node, cst.Assign)
    return assign is not None and "fused" in last_name(assign.targets[0].target)


def _uncertain(draft: Draft, node: Any, word: str, other: Any) -> None:
    name = last_name(other)
    if KEYS.search(name) or not name:
        return
    draft.report(
        "M106",
        node,
        f"{name} may hold a device's name or something else",
        'if it is a device, compare with ("cuda", "npu")'
        if draft.portable
        else 'if it is a device, compare with "npu"',
    )


def _membership(draft: Draft, node: Any, left: Any, right: Any) -> None:
    view = draft.view
    values = [literal_value(element.value) for element in right.elements if isinstance(element, cst.Element)]
    for element in right.elements:
        literal = element.value
        word = _word(literal)
        if not word:
            continue
        draft.handled.add(literal)
        if COUNTERPART[word] in values:
            continue
        others = [value for value in values if value is not None and value != _word(literal)]
        known = any(value in DEVICE_NAMES or value in ("gloo", "mpi", "nccl") for value in others)
        if word == "cuda" and not (speaks_of_device(view, left) or known):
            _uncertain(draft, node, word, left)
            continue
        new = view.source(literal).replace(word, COUNTERPART[word], 1)
        if draft.portable:
            end = view.outer_span(literal).end
            draft.change(_code(word), literal, WHY, (Span(end, end), f", {new}"))
        else:
            draft.replace(_code(word), literal, WHY, new)


def _containment(draft: Draft, node: Any, operator: Any, literal: Any, other: Any) -> None:
    view = draft.view
    word = _word(literal)
    draft.handled.add(literal)
    certain = speaks_of_device(view, other) if word == "cuda" else bool(BACKEND_WORD.search(last_name(other)))
    if not certain or isinstance(other, cst.Dict):
        return  # a key looked for in a table, or a word in a text
    if not draft.portable:
        draft.replace(_code(word), literal, WHY, view.source(literal).replace(word, COUNTERPART[word], 1))
        return
    if _names_it_already(draft, node, COUNTERPART[word]):
        return
    new = view.source(literal).replace(word, COUNTERPART[word], 1)
    negated = isinstance(operator, cst.NotIn)
    joint, test = ("and", "not in") if negated else ("or", "in")
    other_span = view.outer_span(other)
    draft.change(
        _code(word),
        node,
        WHY,
        (
            view.span(node),
            ("(", view.span(literal), f" {test} ", other_span, f" {joint} {new} {test} {view.slice(other_span)})"),
        ),
    )


@FAMILY.on(cst.Call)
def starts_with(draft: Draft, node: Any) -> None:
    """`device.startswith("cuda")`."""
    view = draft.view
    if not isinstance(node.func, cst.Attribute) or node.func.attr.value != "startswith" or len(node.args) != 1:
        return
    literal = node.args[0].value
    text = literal_value(literal)
    if text is None or text not in ("cuda", "cuda:"):
        return
    draft.handled.add(literal)
    if not speaks_of_device(view, node.func.value):
        _uncertain(draft, node, "cuda", node.func.value)
        return
    new = view.source(literal).replace("cuda", "npu", 1)
    if draft.portable:
        draft.replace("M106", literal, WHY, f"({view.source(literal)}, {new})")
    else:
        draft.replace("M106", literal, WHY, new)


@FAMILY.on(cst.IfExp)
def choice(draft: Draft, node: Any) -> None:
    """`"cuda" if torch.cuda.is_available() else "cpu"`: both halves change together."""
    view = draft.view
    body, other = literal_value(node.body) or "", literal_value(node.orelse) or ""
    cuda, rest, literal = (body, other, node.body) if EXACT.fullmatch(body) else (other, body, node.orelse)
    if not EXACT.fullmatch(cuda):
        return
    asked = _asks_for_cuda(draft, node.test)
    if rest.partition(":")[0] not in DEVICE_NAMES and not asked and not isinstance(node.orelse, cst.IfExp):
        return
    draft.handled.add(literal)
    if not draft.portable:
        draft.replace(
            "M107",
            literal,
            "both halves change together; otherwise it runs on the CPU in silence",
            view.source(literal).replace("cuda", "npu", 1),
        )
        return
    quote = literal.quote
    new = ACCELERATOR if cuda == "cuda" else f"f{quote}{{{ACCELERATOR}}}{cuda[4:]}{quote}"
    if asked == "exact" and literal is node.body and rest == "cpu":
        called = node.test.func
        mark_rewritten(draft, called)
        draft.handled.add(called)
        draft.replace("M107", node, "the constant is the CPU where there is no accelerator", new, needs=(ACCELERATOR,))
    else:
        draft.replace("M107", literal, "the device that is there", new, needs=(ACCELERATOR,))


def _asks_for_cuda(draft: Draft, test: Any) -> str:
    if isinstance(test, cst.Call) and "torch.cuda.is_available" in draft.view.names(test.func):
        return "exact"
    return "partly" if re.search(r"cuda", draft.view.source(test)) else ""
