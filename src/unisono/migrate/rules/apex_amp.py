"""M501, M502, M508, M509: apex.amp, to torch.autocast and torch.amp.GradScaler.

`amp.initialize` becomes a GradScaler; the forward pass up to the loss is put under autocast; `scale_loss` becomes
`grad_scaler.scale(loss).backward()`; `optimizer.step()` goes through the scaler. A scaler that is switched off stands at
module level, so that code behind `if use_apex:` keeps its other branch: a disabled scaler does nothing.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from unisono.migrate.edits import Indented, Part, Span
from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.shared import ACCELERATOR, GRAD_SCALER, is_use, mark_rewritten
from unisono.migrate.syntax import argument, literal_value

FAMILY = Family(
    RuleInfo("M501", "amp.initialize of apex", FixKind.UNSAFE),
    RuleInfo("M502", "amp.scale_loss of apex", FixKind.UNSAFE),
    RuleInfo("M508", "other functions of apex.amp", FixKind.UNSAFE),
    RuleInfo("M509", "the forward pass under apex.amp", FixKind.UNSAFE),
)

MODEL_CALL = re.compile(r"(^|\.)(model|net|network|module)\w*$", re.IGNORECASE)
OTHER_ADVICE = "torch.autocast with dtype=torch.float16 around the forward pass, and torch.amp.GradScaler"


def _device(draft: Draft) -> str:
    return ACCELERATOR if draft.portable else '"npu"'


def _needs(draft: Draft) -> tuple[str, ...]:
    return (ACCELERATOR, GRAD_SCALER) if draft.portable else (GRAD_SCALER,)


@FAMILY.on(cst.Attribute, cst.Name)
def amp_name(draft: Draft, node: Any) -> None:
    """Every use of a name of apex.amp."""
    view = draft.view
    if not is_use(view, node):
        return
    qualified = next((n for n in sorted(view.names(node)) if n.startswith("apex.amp.")), None)
    if qualified is None:
        return
    name = qualified.rpartition(".")[2]
    call = view.parent(node)
    if not isinstance(call, cst.Call) or call.func is not node:
        call = None
    if name == "initialize" and call is not None:
        _initialize(draft, node, call)
    elif name == "scale_loss" and call is not None:
        _scale_loss(draft, node, call)
    elif name in ("state_dict", "load_state_dict"):
        mark_rewritten(draft, node)
        draft.replace("M508", node, "the scaler holds the loss scale", f"{GRAD_SCALER}.{name}", needs=_needs(draft))
    elif name == "master_params" and call is not None and len(call.args) == 1:
        mark_rewritten(draft, node)
        optimizer = view.outer_span(call.args[0].value)
        draft.change(
            "M508",
            node,
            "under autocast the parameters themselves are the fp32 ones",
            (view.span(call), ("(p for group in ", optimizer, '.param_groups for p in group["params"])')),
        )
    else:
        draft.report("M508", node, f"apex.amp.{name} has no direct counterpart", OTHER_ADVICE)


def _initialize(draft: Draft, node: Any, call: Any) -> None:
    view = draft.view
    assign = view.parent(call)
    line = view.parent(assign)
    several = argument(call, "num_losses") is not None or any(
        isinstance(arg.value, cst.List | cst.Tuple) for arg in call.args
    )
    if (
        several
        or not isinstance(assign, cst.Assign)
        or not isinstance(line, cst.SimpleStatementLine)
        or len(line.body) > 1
    ):
        draft.report(
            "M501", node, "several models, optimizers or losses, or a form that is not a plain assignment", OTHER_ADVICE
        )
        return
    text = f"{GRAD_SCALER} = {draft.state['torch']}.amp.GradScaler({', '.join([_device(draft), *_scaler_arguments(draft, call)])})"
    function = view.first_ancestor(node, cst.FunctionDef)
    if function is not None and "global_scaler" not in draft.state.setdefault(function, set()):
        draft.state[function].add("global_scaler")
        text = f"global {GRAD_SCALER}{view.newline}{view.indent_of(assign)}{text}"
    mark_rewritten(draft, node)
    why = "autocast and a scaler do what O1 does, and come close to O2"
    draft.replace("M501", assign, why, text, needs=_needs(draft))


def _scaler_arguments(draft: Draft, call: Any) -> list[str]:
    found: list[str] = []
    scale = argument(call, "loss_scale")
    if scale is not None and isinstance(scale.value, cst.Integer | cst.Float):
        found += [f"init_scale={draft.view.source(scale.value)}", "growth_interval=2**30"]
    level = argument(call, "opt_level", 2)
    enabled = argument(call, "enabled")
    conditions = [draft.view.slice(draft.view.outer_span(enabled.value))] if enabled is not None else []
    if level is not None:
        literal = literal_value(level.value)
        if literal == "O0":
            conditions.append("False")
        elif literal is None:
            conditions.append(f'{draft.view.slice(draft.view.outer_span(level.value))} != "O0"')
    if conditions:
        found.append("enabled=" + " and ".join(conditions))
    return found


def _scale_loss(draft: Draft, node: Any, call: Any) -> None:
    view = draft.view
    item = view.parent(call)
    statement = view.parent(item)
    if not isinstance(statement, cst.With) or len(statement.items) != 1 or len(call.args) != 2 or item.asname is None:
        draft.report(
            "M502",
            node,
            "a form that is not `with amp.scale_loss(loss, optimizer) as scaled_loss:`",
            "grad_scaler.scale(loss).backward()",
        )
        return
    scaled = view.source(item.asname.name)
    body = statement.body.body
    source = view.source(body[0]) if len(body) == 1 else ""
    if not source.startswith(f"{scaled}.backward("):
        draft.report(
            "M502",
            node,
            "the block does more than call backward",
            "grad_scaler.scale(loss).backward() in place of the block",
        )
        return
    loss, optimizer = call.args[0].value, call.args[1].value
    mark_rewritten(draft, node)
    rest = source[len(scaled) :]
    draft.change(
        "M502",
        node,
        "the scaler scales the loss and checks the gradients",
        (view.span(statement), (f"{GRAD_SCALER}.scale(", view.span(loss), f"){rest}")),
        needs=_needs(draft),
    )
    _step(draft, statement, view.source(optimizer))
    _forward(draft, statement, view.source(loss))


def _step(draft: Draft, statement: Any, optimizer: str) -> None:
    view = draft.view
    scope = view.first_ancestor(statement, cst.FunctionDef) or view.module
    span = view.span(scope)
    after = view.span(statement).start
    steps = [
        n for n in view.nodes
        if isinstance(n, cst.Expr) and span.start <= view.span(n).start < span.end and view.span(n).start > after
        and view.source(n) == f"{optimizer}.step()"
    ]  # fmt: skip
    if not steps:
        draft.report(
            "M502",
            statement,
            "no plain optimizer.step() follows in this function",
            f"{GRAD_SCALER}.step(optimizer), then {GRAD_SCALER}.update()",
        )
        return
    for step in steps[:1]:
        if step in draft.handled:
            continue
        draft.handled.add(step)
        clip = _clipping(draft, after, view.span(step).start, optimizer)
        lead = f"{view.newline}{view.indent_of(step)}"
        text = f"{GRAD_SCALER}.step({optimizer}){lead}{GRAD_SCALER}.update()"
        edits: list[tuple[Span, Part]] = [(view.span(step), text)]
        if clip is not None:
            start = view.span(clip).start
            edits.append(
                (Span(start, start), f"{GRAD_SCALER}.unscale_({optimizer}){view.newline}{view.indent_of(clip)}")
            )
        draft.change(
            "M502", step, "the scaler skips the step when a gradient is not finite", *edits, needs=_needs(draft)
        )


def _clipping(draft: Draft, start: int, end: int, optimizer: str) -> Any:
    """The statement between backward and step that clips gradients: it needs them unscaled."""
    view = draft.view
    for node in view.nodes:
        if (
            isinstance(node, cst.SimpleStatementLine)
            and start < view.span(node).start < end
            and "clip_grad" in view.source(node)
        ):
            return node
    return None


def _forward(draft: Draft, statement: Any, loss: str) -> None:
    """Put the statements from the model's call to the loss under autocast."""
    view = draft.view
    block, inner = view.parent(statement), statement
    if isinstance(block, cst.IndentedBlock) and isinstance(view.parent(block), cst.If | cst.Else):
        inner = view.parent(block)  # `if use_apex: with amp.scale_loss...`
        while isinstance(view.parent(inner), cst.If):
            inner = view.parent(inner)
        block = view.parent(inner)
    before = list(block.body)[: list(block.body).index(inner)] if inner in list(getattr(block, "body", ())) else []
    end = next((i for i in range(len(before) - 1, -1, -1) if _assigns(view.source(before[i]), loss)), None)
    start = (
        next((i for i, s in enumerate(before[: (end or 0) + 1]) if _calls_model(draft, s)), None)
        if end is not None
        else None
    )
    if start is None or end is None or "'''" in (lines := _text(draft, before, start, end)) or '"""' in lines:
        draft.report(
            "M509",
            statement,
            "the forward pass is not in the same block as the backward pass",
            f"with torch.autocast({_device(draft)}, dtype=torch.float16, enabled={GRAD_SCALER}.is_enabled()): "
            "around the forward pass and the loss",
        )
        return
    torch = draft.state["torch"]
    span = Span(view.span(before[start]).start, view.span(before[end]).end)
    indent = view.indent_of(before[start])
    head = f"with {torch}.autocast({_device(draft)}, dtype={torch}.float16, enabled={GRAD_SCALER}.is_enabled()):"
    draft.change(
        "M509",
        before[start],
        "what apex patched in secret is now a block that can be seen",
        (span, (f"{head}{view.newline}{indent}{view.indent}", Indented(span, view.indent))),
        needs=_needs(draft),
    )


def _assigns(source: str, name: str) -> bool:
    return bool(re.match(rf"{re.escape(name)}\s*(:.*)?=[^=]", source))


def _text(draft: Draft, statements: list[Any], start: int, end: int) -> str:
    return draft.view.slice(Span(draft.view.span(statements[start]).start, draft.view.span(statements[end]).end))


def _calls_model(draft: Draft, statement: Any) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    pending = [statement]
    while pending:
        node = pending.pop()
        if (
            isinstance(node, cst.Call)
            and isinstance(node.func, cst.Name | cst.Attribute)
            and MODEL_CALL.search(draft.view.source(node.func))
        ):
            return True
        pending.extend(node.children)
    return False


def _finish(draft: Draft) -> None:
    """A scaler that no amp.initialize of this file switches on would do nothing, in silence."""
    uses = [f for f in draft.findings if f.fixed and f.code in ("M502", "M508")]
    if uses and not any(f.fixed and f.code == "M501" for f in draft.findings):
        node = next(
            n
            for n in draft.view.nodes
            if isinstance(n, cst.ImportAlias | cst.ImportFrom) and "amp" in draft.view.source(n)
        )
        draft.report(
            "M501",
            node,
            f"amp.initialize is called in another file, so the {GRAD_SCALER} of this one stays switched off",
            f"take the scaler as an argument, or read it as that module's {GRAD_SCALER}",
        )


FAMILY.finishes.append(_finish)
