"""Edits on bytes: nesting, insertion, refusal."""

from __future__ import annotations

from unisono.migrate.edits import Edit, Indented, Span, apply_edits

SOURCE = b"f(x.cuda(), y)\n"


def test_no_edit_leaves_the_bytes() -> None:
    assert apply_edits(SOURCE, []) == (SOURCE, set())


def test_an_outer_edit_renders_the_edits_inside_the_spans_it_keeps() -> None:
    outer = Edit(Span(0, 14), ("g(", Span(2, 10), ")"), owner=1)
    inner = Edit(Span(4, 8), ("npu",), owner=2)
    assert apply_edits(SOURCE, [outer, inner]) == (b"g(x.npu())\n", set())


def test_an_edit_in_text_that_is_dropped_is_refused() -> None:
    outer = Edit(Span(0, 14), ("g()",), owner=1)
    inner = Edit(Span(4, 8), ("npu",), owner=2)
    assert apply_edits(SOURCE, [outer, inner]) == (b"g()\n", {2})


def test_edits_of_one_owner_are_applied_all_or_none() -> None:
    first = Edit(Span(2, 10), ("z",), owner=1)
    half = [Edit(Span(4, 8), ("npu",), owner=2), Edit(Span(12, 13), ("w",), owner=2)]
    assert apply_edits(SOURCE, [first, *half]) == (b"f(z, y)\n", {2})


def test_overlapping_edits_are_refused() -> None:
    edits = [Edit(Span(0, 5), ("a",), owner=1), Edit(Span(3, 8), ("b",), owner=2)]
    assert apply_edits(SOURCE, edits)[1] == {2}


def test_insertions_at_one_place_keep_their_order_and_stand_before_a_replacement() -> None:
    edits = [Edit(Span(2, 3), ("z",), owner=1), Edit(Span(2, 2), ("1",), owner=2), Edit(Span(2, 2), ("2",), owner=3)]
    assert apply_edits(SOURCE, edits)[0] == b"f(12z.cuda(), y)\n"


def test_an_insertion_right_behind_an_edit_is_rendered_once() -> None:
    edits = [Edit(Span(2, 10), ("<", Span(2, 10), ">"), owner=1), Edit(Span(10, 10), ("!",), owner=2)]
    assert apply_edits(SOURCE, edits)[0] == b"f(<x.cuda()>!, y)\n"


def test_indented_spans_push_in_every_line_but_the_first_and_empty_ones() -> None:
    source = b"a\nb\n\nc\n"
    edit = Edit(Span(0, 6), ("with z:\n    ", Indented(Span(0, 6), "    ")), owner=1)
    assert apply_edits(source, [edit])[0] == b"with z:\n    a\n    b\n\n    c\n"
