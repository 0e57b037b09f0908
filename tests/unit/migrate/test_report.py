"""The three forms of the report say the same thing."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from unisono.errors import UserError
from unisono.migrate.engine import migrate_text
from unisono.migrate.findings import FileResult, Options
from unisono.migrate.report import as_json, as_markdown, rule_table, summarize, unified_diff, write_report
from unisono.migrate.report_html import as_html

TEXT = 'import torch\nx = model.cuda()\ny = torch.load("<cuda>")\ntorch.cuda.get_arch_list()\ntorch.jit.script(x)\n'


def results() -> list[FileResult]:
    return [migrate_text(TEXT, Options(), "a.py"), migrate_text("x = (cuda\n", Options(), "bad.py")]


def test_the_summary_counts_each_finding_once() -> None:
    summary = summarize(results())
    assert (summary.files, summary.changed_files, summary.unreadable_files) == (2, 1, 1)
    assert (summary.fixed, summary.left, summary.hints) == (2, 2, 1)
    assert summary.by_code == {"M001": 1, "M102": 1, "M203": 1, "M601": 1, "M810": 1}


def test_json_holds_code_place_reason_and_fix_kind() -> None:
    document = json.loads(as_json(results(), Options(), "unisono migrate a.py"))
    first = document["files"][0]["findings"][0]
    assert (first["code"], first["line"], first["fix_kind"], first["fixed"]) == ("M102", 2, "safe", True)
    assert first["why"]
    assert document["summary"]["left"] == 2


def test_markdown_lists_what_to_do_before_what_is_done() -> None:
    text = as_markdown(results(), Options(), "unisono migrate a.py")
    assert text.index("To do by hand") < text.index("Rewritten: read again") < text.index("### Rewritten\n")


def test_html_is_whole_escaped_and_asks_for_nothing_outside() -> None:
    page = as_html(results(), Options(), "unisono migrate a.py")
    assert "&lt;cuda&gt;" in page
    assert "<cuda>" not in page
    assert not re.search(r"(src|href)\s*=|@import|url\(", page)
    opened: list[str] = []

    class Balance(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list) -> None:
            if tag != "meta":
                opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    Balance().feed(page)
    assert opened == []


def test_a_report_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        write_report(tmp_path / "a.pdf", results(), Options(), "")
    assert caught.value.code == "G106"


def test_the_diff_can_be_applied_as_text() -> None:
    diff = unified_diff(results()[0])
    assert diff.startswith("--- a/a.py\n+++ b/a.py\n@@")
    assert "-x = model.cuda()\n" in diff
    assert "+x = model.npu()\n" in diff


def test_every_code_is_a_letter_and_three_digits_with_a_title() -> None:
    for code, rule in rule_table().items():
        assert re.fullmatch(r"[MK]\d{3}", code)
        assert rule.title
