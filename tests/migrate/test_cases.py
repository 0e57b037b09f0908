"""Every rule against a source before and after, for both targets; and sources that must stay as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.labels import differences

from unisono.migrate.engine import migrate_text
from unisono.migrate.findings import Options, Target
from unisono.migrate.rules import all_rules

HERE = Path(__file__).parent
CASES = sorted(path.name for path in (HERE / "cases").iterdir())
# These say something of the file as a whole; tests/unit/migrate shows them.
WITHOUT_CASE = {"M001", "M002"}


def read(code: str, name: str) -> str:
    return (HERE / "cases" / code / name).read_text(encoding="utf-8")


def expected(code: str, target: Target) -> str:
    portable = HERE / "cases" / code / "after_portable.py"
    return (
        portable.read_text(encoding="utf-8")
        if target is Target.PORTABLE and portable.exists()
        else read(code, "after.py")
    )


@pytest.mark.parametrize("target", list(Target))
@pytest.mark.parametrize("code", CASES)
def test_the_source_becomes_what_is_expected_and_stays_so(code: str, target: Target) -> None:
    once = migrate_text(read(code, "before.py"), Options(target=target))
    assert once.after == expected(code, target)
    assert migrate_text(once.after, Options(target=target)).after == once.after


@pytest.mark.parametrize("code", CASES)
def test_every_labelled_place_is_found_and_no_other(code: str) -> None:
    before = read(code, "before.py")
    assert differences(before, migrate_text(before, Options()).findings) == []


@pytest.mark.parametrize("code", [code for code in CASES if code.startswith("noop")])
def test_what_only_looks_like_cuda_is_left_alone(code: str) -> None:
    before = read(code, "before.py")
    for target in Target:
        result = migrate_text(before, Options(target=target))
        assert result.after == before
        assert result.findings == ()


def test_every_rule_has_a_case_that_shows_it() -> None:
    shown = {
        f.code
        for code in CASES
        for t in Target
        for f in migrate_text(read(code, "before.py"), Options(target=t)).findings
    }
    missing = set(all_rules()) - shown - WITHOUT_CASE - {"M101"}
    assert missing == set()
    assert "import torch_npu\n" in read("M101", "after.py")


def test_manual_findings_say_what_to_write() -> None:
    for code in CASES:
        for finding in migrate_text(read(code, "before.py"), Options()).findings:
            assert finding.why
            assert finding.fixed or finding.advice
