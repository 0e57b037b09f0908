"""Benchmarks compare only what can be compared, and mark what cannot be right."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.bench.case import Case, Measured, Series
from unisono.bench.compare import compare_files
from unisono.bench.forecast import LINKS, forecast, parse_links
from unisono.bench.report import page
from unisono.bench.scaling import efficiencies, strong_cases, table, weak_cases
from unisono.errors import UserError

BASE = Case(recipe="r", devices=1, replicas=1, steps=20, threads=1)


def series(case: Case, *speeds: float, waits: tuple[float, ...] = ()) -> Series:
    shares = [
        {"data": 1.0, "forward": 40.0, "backward": 50.0, "reduce": wait, "update": 3.0}
        for wait in (waits or (5.0,) * case.devices)
    ]
    return Series(case, [Measured(speed, 1e3 / speed, 1.0, 5.0, shares) for speed in speeds])


def test_efficiency_is_the_share_of_perfect_scaling_by_medians() -> None:
    rows = efficiencies([series(BASE, 100, 90, 110), series(replace(BASE, devices=2, replicas=2), 180, 170, 190)])
    assert [row.efficiency for row in rows] == [1.0, 0.9]
    assert rows[1].spread == pytest.approx(20 / 180)
    assert rows[1].faulty is None


def test_more_than_perfect_scaling_beyond_the_noise_is_a_faulty_pair() -> None:
    rows = efficiencies([series(BASE, 100, 100, 100), series(replace(BASE, devices=2), 236, 236, 236)])
    assert rows[1].faulty is not None
    assert "118%" in rows[1].faulty
    noisy = efficiencies([series(BASE, 80, 100, 120), series(replace(BASE, devices=2), 180, 205, 230)])
    assert noisy[1].faulty is None


@pytest.mark.parametrize(
    "change",
    [
        {"threads": 2},
        {"precision": "bf16"},
        {"recipe": "s"},
        {"data_path": "x"},
        {"steps": 30},
        {"per_replica_batch_size": 4},
    ],
)
def test_pairs_that_differ_in_more_than_devices_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(UserError) as caught:
        efficiencies([series(BASE, 100), series(replace(BASE, devices=2, **change), 200)])  # type: ignore[arg-type]  # fields by name
    assert caught.value.code == "B104"


def test_the_rank_that_others_wait_for_is_named() -> None:
    two = replace(BASE, devices=2)
    assert series(two, 100, waits=(30.0, 2.0)).straggler() == 1
    assert series(two, 100, waits=(3.0, 2.0)).straggler() is None
    assert "the others wait for rank 1" in "\n".join(
        table("weak", efficiencies([series(BASE, 90), series(two, 100, waits=(30.0, 2.0))]))
    )


def test_weak_scaling_grows_the_work_and_strong_scaling_shares_it_out() -> None:
    assert [(case.devices, case.replicas) for case in weak_cases(BASE, [1, 4])] == [(1, 1), (4, 4)]
    assert [(case.devices, case.replicas) for case in strong_cases(BASE, [1, 4], 8)] == [(1, 8), (4, 8)]
    with pytest.raises(UserError):
        strong_cases(BASE, [16], 8)


def test_a_verdict_is_given_only_beyond_the_noise(tmp_path: Path) -> None:
    def write(name: str, *speeds: float) -> Path:
        (tmp_path / name).write_text(json.dumps({"series": [series(BASE, *speeds).to_plain()]}), encoding="utf-8")
        return tmp_path / name

    base = write("a", 100, 101, 99)
    assert [v.word for v in compare_files(base, write("b", 80, 81, 79))] == ["slower"]
    assert [v.word for v in compare_files(base, write("c", 130, 131, 129))] == ["faster"]
    assert [v.word for v in compare_files(base, write("d", 101, 110, 92))] == ["within the noise"]
    (tmp_path / "e").write_text("{}", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        compare_files(base, tmp_path / "e")
    assert caught.value.code == "B105"


@given(st.floats(1, 1e4), st.integers(4, 10**9), st.integers(1, 2048))
def test_a_forecast_never_beats_perfect_scaling_and_never_gains_by_slower_links(
    step_ms: float, size: int, devices: int
) -> None:
    fast = forecast(
        step_time_ms=step_ms,
        gradient_bytes=size,
        images=16,
        devices=devices,
        inside=LINKS["hccs"],
        between=LINKS["roce"],
        devices_a_node=8,
    )
    slow = forecast(
        step_time_ms=step_ms,
        gradient_bytes=size,
        images=16,
        devices=devices,
        inside=LINKS["loopback"],
        between=LINKS["loopback"],
        devices_a_node=8,
    )
    assert 0 < slow.efficiency <= fast.efficiency <= 1
    assert fast.exposed_ms <= fast.communication_ms


def test_links_are_read_and_malformed_ones_refused() -> None:
    assert parse_links("hccs=28:5")["hccs"].bandwidth_gb_s == 28
    assert parse_links("own=1.5")["own"].latency_us == 20
    for text in ("hccs=", "nosuch", "hccs=0:1", "a b"):
        with pytest.raises(UserError):
            parse_links(text)


def test_the_page_is_whole_html_without_anything_from_outside() -> None:
    rows = efficiencies([series(BASE, 100, 99), series(replace(BASE, devices=2), 236, 237)])
    text = page("Scaling of <r>", {"weak": rows}, {"cores": 2, "load_before": 0.1}, "unisono bench")

    class Balance(HTMLParser):
        stack: list[str] = []  # noqa: RUF012  # one parser, one test

        def handle_starttag(self, tag: str, attributes: object) -> None:
            if tag not in ("meta", "line", "circle", "rect", "polyline"):
                self.stack.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag in self.stack:
                while self.stack.pop() != tag:
                    pass

    parser = Balance()
    parser.feed(text)
    assert parser.stack == []
    assert "<r>" not in text
    assert "http" not in text
    assert "above 100 %" in text
    assert "load_before" not in text
