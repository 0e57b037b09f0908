"""What a rule is given, and how it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unisono.migrate.edits import Edit, Part, Span
from unisono.migrate.findings import Finding, FixKind, Options, RuleInfo, Target
from unisono.migrate.syntax import ModuleView

Visit = Callable[["Draft", Any], None]
"""A rule's function: looks at one node and answers through the draft."""


class Family:
    """One family of rules, the whole content of a rule file: codes, and functions by node type."""

    def __init__(self, *rules: RuleInfo) -> None:
        self.rules = rules
        self.visits: list[tuple[tuple[type, ...], Visit]] = []
        self.starts: list[Callable[[Draft], None]] = []
        """Called before the walk, to look the module over."""
        self.finishes: list[Callable[[Draft], None]] = []
        """Called after the walk, when every use has been seen."""

    def on(self, *types: type) -> Callable[[Visit], Visit]:
        """Register a function for nodes of these types."""

        def register(visit: Visit) -> Visit:
            self.visits.append((types, visit))
            return visit

        return register


class Draft:
    """The answer for one module while it is being put together."""

    def __init__(self, view: ModuleView, options: Options, kinds: dict[str, FixKind]) -> None:
        self.view = view
        self.options = options
        self.target = options.target
        self.findings: list[Finding] = []
        self.edits: list[Edit] = []
        self.handled: set[Any] = set()
        """Nodes that a rule has dealt with, so that a more general rule leaves them alone."""
        self.state: dict[Any, Any] = {}
        """What families keep for the module: one entry a family, under its own name."""
        self.preamble: set[str] = set()
        """Names of the definitions that the edits rely on; see `migrate.preamble`."""
        self._kinds = kinds

    @property
    def portable(self) -> bool:
        """True when the target is one source for every device."""
        return self.target is Target.PORTABLE

    def change(
        self,
        code: str,
        node: Any,
        why: str,
        *edits: tuple[Span, Part | tuple[Part, ...]],
        kind: FixKind | None = None,
        needs: tuple[str, ...] = (),
    ) -> None:
        """A finding with its fix. Each edit is (span, text) or (span, (text, span, ...))."""
        kind = kind or self._kinds[code]
        if self.options.safe_only and kind is not FixKind.SAFE:
            new = "; ".join(_describe(self.view, parts) for _, parts in edits)
            self.report(code, node, why, f"allow unsafe fixes, or write: {new}", kind=kind)
            return
        if not self._add(code, node, why, kind, "", fixed=True, hint=False):
            return
        owner = len(self.findings) - 1
        self.preamble.update(needs)
        for span, parts in edits:
            self.edits.append(Edit(span, parts if isinstance(parts, tuple) else (parts,), owner))

    def report(
        self, code: str, node: Any, why: str, advice: str, *, hint: bool = False, kind: FixKind = FixKind.MANUAL
    ) -> None:
        """A finding without a fix: `advice` says what to write."""
        self._add(code, node, why, kind, advice, fixed=False, hint=hint)

    def replace(self, code: str, node: Any, why: str, text: str, **options: Any) -> None:
        """Shorthand: replace one node's text."""
        self.change(code, node, why, (self.view.span(node), text), **options)

    def _add(self, code: str, node: Any, why: str, kind: FixKind, advice: str, *, fixed: bool, hint: bool) -> bool:
        if code not in self._kinds:
            raise KeyError(f"rule code {code} is not declared by any family")
        span = self.view.span(node)
        line = self.view.line_of(span.start)
        text = self.view.line_text(line)
        if not self.options.wants(code) or "unisono: keep" in text:
            return False
        end_line = self.view.line_of(max(span.start, span.end - 1))
        column = self.view.column_of(span.start)
        finding = Finding(code, "", line, column, end_line, text.strip()[:160], why, kind, advice, fixed, hint)
        if not fixed and any((f.code, f.line, f.why, f.advice) == (code, line, why, advice) for f in self.findings):
            return False  # one remark a line and kind is enough
        self.findings.append(finding)
        return True


def _describe(view: ModuleView, parts: Part | tuple[Part, ...]) -> str:
    pieces = parts if isinstance(parts, tuple) else (parts,)
    return "".join(
        piece if isinstance(piece, str) else view.slice(piece if isinstance(piece, Span) else piece.span)
        for piece in pieces
    ).strip()
