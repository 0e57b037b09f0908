"""What the user asks of the simulator is checked before anything starts, and travels to children unchanged."""

from __future__ import annotations

import pytest

from unisono.errors import UserError
from unisono.simulator.chips import CHIPS, GIB
from unisono.simulator.fault import SimulatedFault, parse_fault
from unisono.simulator.settings import make_settings, parse_memory, settings_from


@pytest.mark.parametrize(
    ("text", "expected"),
    [("32GiB", 32 * GIB), ("512 MiB", 512 * 2**20), ("8gb", 8 * 10**9), ("1.5GiB", 3 * GIB // 2), (2**20, 2**20)],
)
def test_memory_is_read_with_its_unit(text: str | int, expected: int) -> None:
    assert parse_memory(text) == expected


@pytest.mark.parametrize("text", ["", "lots", "-1GiB", "12 parsecs", "100", "1e9"])
def test_memory_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(UserError) as refusal:
        parse_memory(text)
    assert refusal.value.code == "S105"


def test_settings_go_through_the_environment_unchanged() -> None:
    settings = make_settings(4, "910a", "16GiB", ["rank=1,step=2,kind=hang", "rank=0,step=0,kind=slow:2"])
    assert settings_from(settings.to_environment()) == settings
    assert settings.chip == "910A"
    assert settings.rules.memory_bytes == 16 * GIB
    assert settings_from({}) is None


def test_a_chips_own_memory_holds_where_none_is_asked_for() -> None:
    for name, chip in CHIPS.items():
        assert make_settings(1, name).rules == chip


@pytest.mark.parametrize(("devices", "chip", "code"), [(0, None, "S103"), (65, None, "S103"), (8, "910D", "S104")])
def test_impossible_servers_are_refused(devices: int, chip: str | None, code: str) -> None:
    with pytest.raises(UserError) as refusal:
        make_settings(devices, chip)
    assert refusal.value.code == code


def test_a_fault_is_read_as_it_is_written() -> None:
    assert parse_fault("rank=3, step=20, kind=hang") == SimulatedFault("hang", 3, 20)
    assert parse_fault("kind=slow:2.5,rank=1") == SimulatedFault("slow", 1, 0, 2.5)
    assert parse_fault("rank=0,step=1,kind=exit,attempt=all").attempt is None


@pytest.mark.parametrize(
    "text",
    ["", "hang", "rank=1", "rank=1,step=2,kind=explode", "rank=x,step=2,kind=hang", "rank=1,rank=2,kind=hang",
     "rank=1,step=2,kind=slow", "rank=1,step=2,kind=slow:0.5", "rank=1,step=2,kind=slow:fast", "rank=1,kind=hang:3",
     "rank=1,step=-1,kind=oom", "rank=1,step=2,kind=hang,color=red"],
)  # fmt: skip
def test_a_fault_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(UserError) as refusal:
        parse_fault(text)
    assert refusal.value.code == "S106"
