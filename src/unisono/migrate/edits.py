"""Edits on the bytes of a source, so that what no edit names stays as it was, byte for byte.

An edit replaces a span by a template. A template holds text and spans of the old source; those spans are rendered
with the edits that lie inside them, so a rule can move `f(x.cuda())` about while another rule rewrites `x.cuda()`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Bytes [start, end) of the UTF-8 source."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Indented:
    """A span whose lines after the first are pushed in by `by`."""

    span: Span
    by: str


Part = str | Span | Indented


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `span` by `parts`. An empty span inserts. `owner` numbers the finding that the edit belongs to."""

    span: Span
    parts: tuple[Part, ...]
    owner: int = -1


def apply_edits(source: bytes, edits: Sequence[Edit]) -> tuple[bytes, set[int]]:
    """The new source, and the owners of edits that could not be applied because an earlier one is in the way.

    An owner's edits are applied all or none. Edits given first win; an edit inside another one's span survives
    only when the outer template keeps the span that holds it.
    """
    refused: set[int] = set()
    accepted: list[Edit] = []
    by_owner: dict[int, list[Edit]] = {}
    for edit in edits:
        by_owner.setdefault(edit.owner, []).append(edit)
    for owner, group in by_owner.items():
        if all(_compatible(edit, other) for edit in group for other in accepted):
            accepted.extend(group)
        else:
            refused.add(owner)
    return _render(source, Span(0, len(source)), accepted), refused


def _compatible(edit: Edit, other: Edit) -> bool:
    one, two = edit.span, other.span
    if one.end <= two.start or two.end <= one.start:
        return True
    if one == two:
        return False
    if two.start <= one.start and one.end <= two.end:
        return _keeps(other, one)
    if one.start <= two.start and two.end <= one.end:
        return _keeps(edit, two)
    return False


def _keeps(outer: Edit, inner: Span) -> bool:
    for part in outer.parts:
        span = part.span if isinstance(part, Indented) else part
        if isinstance(span, Span) and span.start <= inner.start and inner.end <= span.end:
            return True
    return False


def _render(source: bytes, span: Span, edits: Sequence[Edit]) -> bytes:
    inside = [e for e in edits if span.start <= e.span.start and e.span.end <= span.end]
    # Stable sort: insertions at one place keep their order; a longer edit at the same start is the outer one.
    inside.sort(key=lambda e: (e.span.start, -e.span.end if e.span.end > e.span.start else -(2**62)))
    out = bytearray()
    position = span.start
    for index, edit in enumerate(inside):
        if edit.span.start < position:
            continue  # lies inside an outer edit, which renders it
        out += source[position : edit.span.start]
        # An insertion right behind the edit is not part of it.
        rest = [e for e in inside[index + 1 :] if e.span.end <= edit.span.end and e.span.start < edit.span.end]
        for part in edit.parts:
            out += _render_part(source, part, rest)
        position = edit.span.end
    out += source[position : span.end]
    return bytes(out)


def _render_part(source: bytes, part: Part, edits: Sequence[Edit]) -> bytes:
    if isinstance(part, str):
        return part.encode("utf-8")
    if isinstance(part, Span):
        return _render(source, part, edits)
    text = _render(source, part.span, edits)
    lines = text.split(b"\n")
    by = part.by.encode("utf-8")
    return b"\n".join([lines[0], *((by + line if line.strip() else line) for line in lines[1:])])
