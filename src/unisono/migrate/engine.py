"""One file: parse, ask the rules, apply their edits, check that the result still parses."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import replace

import libcst as cst

from unisono.migrate.edits import Edit, Span, apply_edits
from unisono.migrate.findings import FileResult, Finding, FixKind, Options, Target
from unisono.migrate.preamble import preamble_edits
from unisono.migrate.rules import FAMILIES, all_rules, visits_by_type
from unisono.migrate.rules.base import Draft
from unisono.migrate.rules.shared import ACCELERATOR
from unisono.migrate.source import BYTE_ORDER_MARK
from unisono.migrate.syntax import ModuleView

# A file without any of these words has nothing to find, and is not parsed.
WORDS = re.compile(
    r"cuda|nccl|apex|horovod|nvidia|pynvml|nvml|torch|triton|flash_attn|xformers|bitsandbytes|cupy|tensorrt|local.rank|gpustat|GPUtil|nvitop"
    r"|cudf|cuml|faiss|tinycudann|transformer_engine|deepspeed|CUBLAS|amp_C",
    re.IGNORECASE,
)
BRACKETS = re.compile(r"[()\[\]{}]")
DEEPEST = 100
USES_NPU = re.compile(r"npu|hccl")


def migrate_text(text: str, options: Options, path: str = "<text>") -> FileResult:
    """The migrated text of a Python source and its findings. Never raises for what the text holds."""
    lines = text.count("\n") + 1
    if not WORDS.search(text):
        return FileResult(path, text, text, lines=lines)
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    body = text[len(mark) :]
    if _nests_too_deeply(body):
        return _unreadable(path, text, "brackets are nested more than 100 deep", 1)
    try:
        view = ModuleView(body)
    except cst.ParserSyntaxError as error:
        return _unreadable(path, text, f"line {error.raw_line}: {error.message.splitlines()[0]}", error.raw_line)
    except (RecursionError, ValueError, UnicodeError) as error:
        return _unreadable(path, text, f"{type(error).__name__}: {str(error)[:80] or 'nested too deeply'}", 1)
    if view.module.code != body:
        return _unreadable(path, text, "its text does not survive parsing", 1)
    draft = _ask(view, options)
    after, findings = _apply(draft)
    findings = sorted((replace(finding, path=path) for finding in findings), key=lambda f: (f.line, f.column, f.code))
    return FileResult(path, text, mark + after, tuple(findings), lines=lines)


def _nests_too_deeply(text: str) -> bool:
    """True beyond what LibCST's native parser survives; it would end the process, not raise.

    Brackets in strings are counted too, so a suspicion is left to Python's own parser, which refuses 200 levels.
    """
    depth = deepest = 0
    for match in BRACKETS.finditer(text):
        depth = max(0, depth + (1 if match.group() in "([{" else -1))
        deepest = max(deepest, depth)
    if deepest <= DEEPEST:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return False


def _unreadable(path: str, text: str, reason: str, line: int) -> FileResult:
    finding = Finding(
        "M001",
        path,
        line,
        1,
        line,
        "",
        f"it cannot be parsed: {reason}",
        FixKind.MANUAL,
        "mend the syntax, then run migrate again",
    )
    return FileResult(path, text, text, (finding,), error=reason, lines=text.count("\n") + 1)


def _ask(view: ModuleView, options: Options) -> Draft:
    draft = Draft(view, options, {code: rule.fix_kind for code, rule in all_rules().items()})
    for family in FAMILIES:
        for start in family.starts:
            start(draft)
    for node in view.nodes:
        for visit in visits_by_type(node.__class__):
            visit(draft, node)
    for family in FAMILIES:
        for finish in family.finishes:
            finish(draft)
    return draft


def _apply(draft: Draft) -> tuple[str, list[Finding]]:
    view = draft.view
    edits = _drop_covered(draft)
    _need_torch_npu(draft, edits)
    written = [*edits, *(preamble_edits(draft) if edits else [])]
    if _constant_is_taken(draft):
        written = [_with_other_constant(edit) for edit in written]
    after, refused = apply_edits(view.bytes, written)
    findings = [
        replace(finding, fixed=False, advice="run migrate once more: two rules met here")
        if index in refused
        else finding
        for index, finding in enumerate(draft.findings)
        if index not in draft.state["covered"]
    ]
    text = after.decode("utf-8")
    fault = _fault(view.text, text)
    if fault:
        why = f"the rewritten file would not compile ({fault}), so nothing was changed"
        undone = [replace(f, fixed=False) for f in findings]
        undone.append(Finding("M002", "", 1, 1, 1, "", why, FixKind.MANUAL, "please report it, with the file"))
        return view.text, undone
    return text, findings


def _constant_is_taken(draft: Draft) -> bool:
    """True when the program has an ACCELERATOR of its own."""
    return (
        draft.portable
        and draft.view.binds(ACCELERATOR)
        and f"{ACCELERATOR} = " + draft.state["torch"] not in draft.view.text
    )


def _with_other_constant(edit: Edit) -> Edit:
    parts = tuple(
        re.sub(rf"\b{ACCELERATOR}\b", f"{ACCELERATOR}_TYPE", p) if isinstance(p, str) else p for p in edit.parts
    )
    return replace(edit, parts=parts)


def _fault(before: str, after: str) -> str:
    """Why the new text is not valid Python, or "". A text that this Python could not compile before is only parsed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(after, "migrated", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError) as error:
            try:
                compile(before, "original", "exec", dont_inherit=True)
            except (SyntaxError, ValueError, RecursionError):
                return _parse_fault(after)
            return str(error)
    return ""


def _parse_fault(text: str) -> str:
    try:
        cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        return str(error.message).splitlines()[0]
    return ""


def _drop_covered(draft: Draft) -> list[Edit]:
    """Leave out findings whose every edit lies in text that an earlier edit replaces as a whole."""
    outer = [e for e in draft.edits if e.span.end > e.span.start]
    covered: set[int] = set()
    kept: list[Edit] = []
    by_owner: dict[int, list[Edit]] = {}
    for edit in draft.edits:
        by_owner.setdefault(edit.owner, []).append(edit)
    for owner, group in by_owner.items():
        if all(
            any(_covers(o, edit.span) for o in outer if o.owner < owner and o.owner not in covered) for edit in group
        ):
            covered.add(owner)
        else:
            kept.extend(group)
    draft.state["covered"] = covered
    return kept


def _covers(outer: Edit, inner: Span) -> bool:
    span = outer.span
    if not (span.start <= inner.start and inner.end <= span.end) or inner.start == inner.end in (span.start, span.end):
        return False
    kept = [part if isinstance(part, Span) else part.span for part in outer.parts if not isinstance(part, str)]
    return not any(part.start <= inner.start and inner.end <= part.end for part in kept)


def _need_torch_npu(draft: Draft, edits: list[Edit]) -> None:
    """npu target: a file that now speaks of npu has to load torch_npu, which registers it."""
    if draft.target is not Target.NPU:
        return
    uses_torch = any(name in draft.view.text for name in ("import torch", "from torch"))
    speaks = any(USES_NPU.search(part) for edit in edits for part in edit.parts if isinstance(part, str))
    if uses_torch and speaks:
        draft.preamble.add("torch_npu")
