"""The runner, the host's limits and the data set."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from unisono.doctor import host, runner
from unisono.doctor.dataset import check_dataset
from unisono.doctor.finding import Finding, fail, ok
from unisono.doctor.runner import Examination, examine, failed, run_check, themes
from unisono.errors import UserError

SOURCE = Path(runner.__file__).parent


def test_a_check_that_crashes_keeps_what_it_found_and_says_why() -> None:
    def check() -> Iterator[Finding]:
        yield ok("H101", "fine")
        raise ValueError("planted")

    first, second = run_check(check)
    assert (first.status, second.status) == ("ok", "unknown")
    assert second.evidence == "ValueError: planted"


def test_only_a_fail_makes_the_answer_no() -> None:
    assert not failed({"a": [ok("H1", "x")]})
    assert failed({"a": [ok("H1", "x")], "b": [fail("H2", "x", "y", "z")]})


def test_an_unknown_theme_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="H195"):
        examine(Examination(only=("netwrk",)))


def test_a_theme_asked_for_by_name_is_run_without_its_option() -> None:
    assert "collectives" not in themes(Examination())
    assert "collectives" in themes(Examination(only=("collectives",)))
    assert "training" in themes(Examination(only=("training",)))


def test_every_code_that_doctor_gives_is_in_the_table() -> None:
    given = {
        code for path in SOURCE.glob("*.py") for code in re.findall(r'"(H1\d\d)"', path.read_text(encoding="utf-8"))
    }
    with open(SOURCE.parent / "codes" / "H.tsv", encoding="utf-8", newline="") as table:
        known = {row["code"] for row in csv.DictReader(table, delimiter="\t")}
    assert len(given) > 40
    assert given - known == set()


def test_a_containers_limits_are_read(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert host._cgroup_cores(tmp_path) == 1.5
    assert host._cgroup_memory(tmp_path) == 600


@pytest.mark.parametrize("text", ["max 100000", "", "x y", "²"])
def test_no_limit_and_nonsense_limit_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "cpu.max").write_text(text, encoding="utf-8")
    (tmp_path / "memory.max").write_text(text.split(" ")[0], encoding="utf-8")
    (tmp_path / "memory.current").write_text("1")
    assert host._cgroup_cores(tmp_path) is None
    assert host._cgroup_memory(tmp_path) is None


def test_limits_of_the_first_version_of_control_groups_are_read(tmp_path: Path) -> None:
    for name, text in {
        "cpu/cpu.cfs_quota_us": "250000",
        "cpu/cpu.cfs_period_us": "100000",
        "memory/memory.limit_in_bytes": "1000",
        "memory/memory.usage_in_bytes": "400",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert (host._cgroup_cores(tmp_path), host._cgroup_memory(tmp_path)) == (2.5, 600)
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("-1")
    (tmp_path / "memory/memory.limit_in_bytes").write_text("9223372036854771712")
    assert (host._cgroup_cores(tmp_path), host._cgroup_memory(tmp_path)) == (None, None)


def test_a_tight_limit_of_processes_is_a_warning_that_names_who_sets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids_max = tmp_path / "pids.max"
    limits = (host.resource.RLIM_INFINITY, host.resource.RLIM_INFINITY)
    monkeypatch.setattr(host.resource, "getrlimit", lambda _: limits)
    assert host._processes(pids_max).status == "ok"
    pids_max.write_text("max\n")
    assert host._processes(pids_max).status == "ok"
    pids_max.write_text("100\n")
    assert (host._processes(pids_max).status, "pids.max" in host._processes(pids_max).evidence) == ("warn", True)
    limits = (50, 2000)
    assert host._processes(pids_max).command == "ulimit -u 2000"


def test_too_few_cores_for_the_devices_is_a_warning() -> None:
    assert host._cores(10_000).status == "warn"


def test_a_data_folder_is_missing_empty_or_recognised(tmp_path: Path) -> None:
    def statuses(path: Path | None) -> list[str]:
        return [finding.status for finding in check_dataset(path)]

    assert statuses(None) == ["skip"]
    assert statuses(tmp_path / "none") == ["fail"]
    assert statuses(tmp_path) == ["fail"]
    for part in ("train", "val"):
        (tmp_path / part / "cat").mkdir(parents=True)
        (tmp_path / part / "cat" / "1.jpg").write_bytes(b"x" * 100)
    assert statuses(tmp_path) == ["ok", "ok"]
