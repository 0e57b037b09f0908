"""`npu-smi info` in its many forms: every chip and process is read, and nothing makes the parser fall."""

from __future__ import annotations

import re

import pytest
from helpers.shared import shared_dir
from hypothesis import given
from hypothesis import strategies as st

from unisono.doctor.npu_smi import parse_npu_smi

TWO_CHIPS_A_CARD = """\
| npu-smi 25.2.0                   Version: 25.2.0                                               |
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
| 0     Ascend910           | OK            | 162.8       37                0    / 0             |
| 0     0                   | 0000:9C:00.0  | 0           0    / 0          3133 / 65536         |
| 0     Ascend910           | Warning       | -           91                0    / 0             |
| 1     1                   | 0000:9E:00.0  | 7           0    / 0          2876 / 65536         |
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
| 0       1                 | 990711        | python                   | 7746                    |
"""
NOTHING_KNOWN = """\
| 0     910B                | NA            | NA          NA                NA   / NA            |
| 0                         | NA            | NA          NA   / NA         NA   / NA            |
| 1     910B                | OK            | 90.0        40                0    / 0             |
| 0                         | 0000:02:00.0  | 3           0    / 0          100  / 65536         |
"""
MASKED = """\
| 7     xxx                 | OK            | 67.0        38                0    / 0             |
| 0                         | 0000:3D:00.0  | 0           2346 / 15567      12   / 32768         |
"""
CHINESE = """\
| npu-smi 24.1.0                   版本: 24.1.0                                                   |
| NPU   名称                | 健康状态      | 功率(W)     温度(C)           大页内存使用(page)   |
| 2     910B3               | OK            | 101.8       43                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3318 / 65536         |
"""


def test_two_chips_of_a_card_are_two_chips() -> None:
    info = parse_npu_smi(TWO_CHIPS_A_CARD)
    assert info.version == "25.2.0"
    assert [(chip.card, chip.chip, chip.health) for chip in info.chips] == [(0, 0, "OK"), (0, 1, "Warning")]
    assert [chip.power_w for chip in info.chips] == [162.8, None]
    assert (info.chips[1].memory_used_mb, info.chips[1].memory_total_mb) == (2876, 65536)
    assert [(process.card, process.chip, process.pid) for process in info.processes] == [(0, 1, 990711)]


def test_a_chip_of_which_nothing_is_known_is_still_a_chip() -> None:
    first, second = parse_npu_smi(NOTHING_KNOWN).chips
    assert (first.health, first.temperature_c, first.memory_total_mb, first.bus_id) == ("NA", None, None, None)
    assert (second.card, second.temperature_c) == (1, 40)


def test_masked_names_and_hbm_beside_ddr() -> None:
    (chip,) = parse_npu_smi(MASKED).chips
    assert (chip.name, chip.memory_used_mb, chip.memory_total_mb) == ("xxx", 12, 32768)


def test_headers_in_another_language_do_not_matter() -> None:
    assert [chip.name for chip in parse_npu_smi(CHINESE).chips] == ["910B3"]


def test_a_table_cut_between_a_chips_rows_leaves_that_chip_out() -> None:
    lines = TWO_CHIPS_A_CARD.splitlines()
    assert len(parse_npu_smi("\n".join(lines[:6])).chips) == 1


def test_every_known_form_of_the_table_gives_all_its_chips() -> None:
    forms = sorted((shared_dir() / "facts" / "npu_smi").glob("npu_smi_info_[0-9A]*.txt"))
    assert len(forms) >= 11
    for form in forms:
        text = form.read_text(encoding="utf-8")
        buses = re.findall(r"\|\s*(?:[0-9A-F]{4}:[0-9A-F]{2}:[0-9A-F]{2}\.\d|NA)\s*\|\s*\d", text)
        info = parse_npu_smi(text)
        assert len(info.chips) == len(buses) > 0, form.name
        assert all(chip.memory_total_mb for chip in info.chips), form.name


@pytest.mark.parametrize("text", ["", "|", "|||", "| ² | ² | ² | ² |", "| 1 | ² | a | 1 |", "Invalid card id."])
def test_odd_texts_give_nothing(text: str) -> None:
    assert parse_npu_smi(text).chips == ()


@given(st.text())
def test_no_text_makes_the_parser_fall(text: str) -> None:
    parse_npu_smi(text)


@given(
    st.lists(st.lists(st.sampled_from(["0", "1 x", "NA", "0000:9C:00.0", "3 / 4", "²", "-", "9" * 30, ""]), max_size=6))
)
def test_no_table_makes_the_parser_fall(rows: list[list[str]]) -> None:
    parse_npu_smi("\n".join("|" + "|".join(row) + "|" for row in rows))
