"""One parsed module with what rules ask of it: names resolved through imports and aliases, parents, spans, text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import libcst as cst
from libcst.metadata import (
    Assignment,
    ByteSpanPositionProvider,
    ImportAssignment,
    MetadataWrapper,
    QualifiedNameSource,
    Scope,
    ScopeProvider,
)

from unisono.migrate.edits import Span

_WHITE_SPACE = {cst.SimpleWhitespace, cst.ParenthesizedWhitespace, cst.TrailingWhitespace, cst.EmptyLine}


class ModuleView:
    """A module parsed once. Positions are byte offsets into the UTF-8 form of the source.

    Raises `libcst.ParserSyntaxError` or RecursionError when the text cannot be parsed.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.bytes = text.encode("utf-8")
        self.module = cst.parse_module(text)
        wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
        metadata = wrapper.resolve_many([ScopeProvider, ByteSpanPositionProvider])
        self._scopes: Any = metadata[ScopeProvider]
        self._positions: Any = metadata[ByteSpanPositionProvider]
        self._line_starts = [0, *(i + 1 for i, byte in enumerate(self.bytes) if byte == 10)]
        self._parents: dict[Any, Any] = {}
        self.nodes: list[Any] = []
        self._collect()
        self.global_scope: Scope = self._scopes[self.module]
        self.newline: str = self.module.default_newline
        self.indent: str = self.module.default_indent
        self._names: dict[Any, frozenset[str]] = {}
        self._by_scope: dict[tuple[Scope, str], set[str]] = {}

    def _collect(self) -> None:
        pending: list[Any] = [self.module]
        while pending:
            node = pending.pop()
            self.nodes.append(node)
            children = node.children
            for child in reversed(children):
                if type(child) in _WHITE_SPACE:
                    continue
                self._parents[child] = node
                pending.append(child)

    def parent(self, node: Any) -> Any:
        """The node that holds this one; None for the module."""
        return self._parents.get(node)

    def ancestors(self, node: Any) -> Iterator[Any]:
        """The node's parent, its parent, and so on up to the module."""
        while (node := self._parents.get(node)) is not None:
            yield node

    def first_ancestor(self, node: Any, *types: type) -> Any:
        """The nearest ancestor of one of these types, or None."""
        return next((a for a in self.ancestors(node) if isinstance(a, types)), None)

    def span(self, node: Any) -> Span:
        """The bytes of the node, without the parentheses and white space around it."""
        position = self._positions[node]
        return Span(position.start, position.start + position.length)

    def outer_span(self, node: Any) -> Span:
        """The bytes of the node together with its own parentheses."""
        span = self.span(node)
        lpar, rpar = getattr(node, "lpar", ()), getattr(node, "rpar", ())
        if lpar and rpar:
            return Span(self.span(lpar[0]).start, self.span(rpar[-1]).end)
        return span

    def source(self, node: Any) -> str:
        """The node's text in the source."""
        span = self.span(node)
        return self.bytes[span.start : span.end].decode("utf-8")

    def slice(self, span: Span) -> str:
        """The text of these bytes."""
        return self.bytes[span.start : span.end].decode("utf-8")

    def line_of(self, offset: int) -> int:
        """Line number of a byte offset, from 1."""
        return bisect_right(self._line_starts, offset)

    def column_of(self, offset: int) -> int:
        """Column in characters of a byte offset, from 1."""
        start = self._line_starts[self.line_of(offset) - 1]
        return len(self.bytes[start:offset].decode("utf-8", "replace")) + 1

    def line_text(self, line: int) -> str:
        """The text of a line, from 1, without its newline."""
        start = self._line_starts[line - 1]
        end = self._line_starts[line] if line < len(self._line_starts) else len(self.bytes)
        return self.bytes[start:end].decode("utf-8", "replace").rstrip("\r\n")

    def line_start(self, offset: int) -> int:
        """Byte offset at which the line of `offset` starts."""
        return self._line_starts[self.line_of(offset) - 1]

    def indent_of(self, node: Any) -> str:
        """The white space before the first token of the line on which the node starts."""
        line = self.line_text(self.line_of(self.span(node).start))
        return line[: len(line) - len(line.lstrip())]

    # --- names ---------------------------------------------------------------------------------------------------

    def scope_of(self, node: Any) -> Scope:
        """The scope in which the node's names are looked up."""
        scope = self._scopes.get(node)
        current = node
        while scope is None and (current := self._parents.get(current)) is not None:
            scope = self._scopes.get(current)
        return scope or self.global_scope

    def names(self, node: Any) -> frozenset[str]:
        """Every dotted name that the expression can stand for, through imports and plain aliases; empty if none.

        A local variable that is no alias gives nothing, so `cuda = device.type != "cpu"` is never taken for torch.cuda.
        """
        if node not in self._names:
            self._names[node] = frozenset(self._resolve(node))
        return self._names[node]

    def name(self, node: Any, prefix: str = "torch") -> str | None:
        """One of `names`, the first that starts with `prefix` when there are several."""
        found = sorted(self.names(node))
        for candidate in found:
            if candidate == prefix or candidate.startswith(prefix + "."):
                return candidate
        return found[0] if found else None

    def _resolve(self, node: Any) -> set[str]:
        if isinstance(node, cst.Attribute):
            return {f"{base}.{node.attr.value}" for base in self._resolve(node.value)}
        if isinstance(node, cst.Call):
            return self._resolve_call(node)
        if not isinstance(node, cst.Name):
            return set()
        key = (self.scope_of(node), node.value)
        if key not in self._by_scope:
            self._by_scope[key] = set()  # what a name is set from itself adds nothing
            self._by_scope[key] = self._resolve_name(*key)
        return self._by_scope[key]

    def _resolve_name(self, scope: Scope, name: str) -> set[str]:
        found: set[str] = set()
        for assignment in scope[name]:
            if isinstance(assignment, ImportAssignment):
                names = assignment.get_qualified_names_for(name)
                found |= {each.name for each in names if each.source is QualifiedNameSource.IMPORT}
            elif isinstance(assignment, Assignment):
                found |= self._resolve_alias(assignment)
        return found

    def _resolve_call(self, node: Any) -> set[str]:
        """`getattr(torch, "cuda")` and `importlib.import_module("torch.cuda")` with literal names."""
        last = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
        if not isinstance(last, cst.Name) or last.value not in ("getattr", "import_module"):
            return set()
        literals = [literal_value(argument.value) for argument in node.args]
        if isinstance(node.func, cst.Name) and node.func.value == "getattr" and len(literals) in (2, 3):
            attribute = literals[1]
            if attribute is not None and attribute.isidentifier():
                return {f"{base}.{attribute}" for base in self._resolve(node.args[0].value)}
        if self._resolve(node.func) & {"importlib.import_module"} and literals[:1] and literals[0]:
            return {literals[0]}
        return set()

    def _resolve_alias(self, assignment: Any) -> set[str]:
        target = self._parents.get(assignment.node)
        statement = self._parents.get(target)
        value = None
        if isinstance(target, cst.AssignTarget) and isinstance(statement, cst.Assign):
            value = statement.value
        elif isinstance(target, cst.AnnAssign):
            value = target.value
        if isinstance(value, cst.Name | cst.Attribute | cst.Call):
            return self._resolve(value)
        return set()

    def assigned_values(self, name_node: Any) -> list[Any]:
        """The values of the plain assignments to this name that its scope sees."""
        values: list[Any] = []
        for assignment in self.scope_of(name_node)[name_node.value]:
            if isinstance(assignment, Assignment):
                target = self._parents.get(assignment.node)
                statement = self._parents.get(target)
                if isinstance(target, cst.AssignTarget) and isinstance(statement, cst.Assign):
                    values.append(statement.value)
        return values

    def assigned_value(self, name_node: Any) -> Any:
        """The value of the only assignment to this name that its scope sees, or None."""
        values = self.assigned_values(name_node)
        return values[0] if len(values) == 1 else None

    def accesses(self, name_node: Any) -> list[Any]:
        """Every place in its scope that reads this assigned name."""
        found: list[Any] = []
        for assignment in self.scope_of(name_node)[name_node.value]:
            found.extend(access.node for access in assignment.references)
        return found

    def binds(self, name: str) -> bool:
        """True when any scope of the module assigns or imports this name."""
        return any(isinstance(node, cst.Name) and node.value == name for node in self.nodes)

    def local_name_of(self, qualified: str) -> str | None:
        """How module-level code writes an imported name: "torch" or "th" for torch; None when it is not imported."""
        for assignment in self.global_scope.assignments:
            if isinstance(assignment, ImportAssignment):
                for found in assignment.get_qualified_names_for(assignment.name):
                    if found.name == qualified and "." not in assignment.name:
                        return str(assignment.name)
        return None


def literal_value(node: Any) -> str | None:
    """The value of a plain string literal (not bytes, not an f-string), or None."""
    if isinstance(node, cst.SimpleString) and "b" not in node.prefix.lower():
        value = node.evaluated_value
        return value if isinstance(value, str) else None
    return None


def argument(call: Any, keyword: str, position: int | None = None) -> Any:
    """The `Arg` node given by keyword, or by position when no earlier argument is starred; None when absent."""
    for index, arg in enumerate(call.args):
        if arg.keyword is not None and arg.keyword.value == keyword:
            return arg
        if arg.star:
            continue
        if arg.keyword is None and position == index and not any(a.star for a in call.args[:index]):
            return arg
    return None
