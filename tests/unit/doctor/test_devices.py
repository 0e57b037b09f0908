"""Devices and their ports, through stand-ins for npu-smi, nvidia-smi and hccn_tool."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.doctor.commands import run
from unisono.doctor.devices import check_gpus, check_npus
from unisono.doctor.finding import Finding
from unisono.doctor.network import check_network, link_state, parse_hccn_conf, tls_switch

from .conftest import Tool


def table(*chips: tuple[int, str, str, int, str], processes: str = "") -> str:
    """A table of (card, health, temperature, used MB, bus)."""
    rows = [
        f"| {card}     910B3 | {health} | 90.0 {temperature} 0 / 0 |\n| 0 | {bus} | 0 0 / 0 {used} / 65536 |"
        for card, health, temperature, used, bus in chips
    ]
    return "\n".join(["| npu-smi 24.1.0   Version: 24.1.0 |", *rows, processes])


HEALTHY = table((0, "OK", "40", 3318, "0000:C1:00.0"), (1, "OK", "41", 3314, "0000:C2:00.0"))


def by_code(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.code: finding for finding in findings}


def npus() -> dict[str, Finding]:
    return by_code(list(check_npus()))


def test_no_tool_is_a_skip(tool: Tool) -> None:
    assert [finding.status for finding in [*check_npus(), *check_gpus()]] == ["skip", "skip"]


def test_healthy_cards_are_ok(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASCEND_RT_VISIBLE_DEVICES", raising=False)
    tool("npu-smi", HEALTHY)
    assert {code: finding.status for code, finding in npus().items() if finding.status != "ok"} == {"H135": "skip"}
    assert npus()["H130"].title.startswith("2 NPU chips")


@pytest.mark.parametrize(
    ("health", "status"), [("Alarm", "fail"), ("Critical", "fail"), ("Warning", "warn"), ("NA", "warn")]
)
def test_an_ill_chip_is_named(tool: Tool, health: str, status: str) -> None:
    tool("npu-smi", table((0, "OK", "40", 3318, "0000:C1:00.0"), (5, health, "41", 3314, "0000:C2:00.0")))
    finding = npus()["H131"]
    assert finding.status == status
    assert "NPU 5" in finding.evidence
    assert "-i 5" in finding.command


def test_a_hot_chip_and_unknown_temperatures(tool: Tool) -> None:
    tool("npu-smi", table((0, "OK", "97", 3318, "0000:C1:00.0")))
    assert npus()["H132"].status == "warn"
    tool("npu-smi", table((0, "OK", "NA", 3318, "0000:C1:00.0")))
    assert npus()["H132"].status == "unknown"


def test_leftover_processes_are_named_with_the_command_that_ends_them(tool: Tool) -> None:
    tool("npu-smi", table((0, "OK", "40", 30000, "0000:C1:00.0"), processes="| 0 0 | 4711 | python | 26000 |"))
    finding = npus()["H133"]
    assert (finding.status, finding.command) == ("warn", "kill 4711")


def test_memory_without_a_process_points_to_another_container(tool: Tool) -> None:
    tool("npu-smi", table((0, "OK", "40", 30000, "0000:C1:00.0")))
    assert "container" in npus()["H133"].remedy


def test_an_answer_without_cards_fails_with_the_tools_words(tool: Tool) -> None:
    tool("npu-smi", "DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)", code=1)
    (finding,) = check_npus()
    assert finding.status == "fail"
    assert "DrvMng" in finding.evidence


@pytest.mark.parametrize(
    ("asked", "status"), [("0,1", "ok"), ("1,0", "warn"), ("0,7", "fail"), ("0,x", "fail"), ("²", "fail")]
)
def test_visible_devices(tool: Tool, monkeypatch: pytest.MonkeyPatch, asked: str, status: str) -> None:
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", asked)
    tool("npu-smi", HEALTHY)
    assert npus()["H134"].status == status


def test_gpus_hot_and_in_use(tool: Tool) -> None:
    tool(
        "nvidia-smi",
        "0, NVIDIA H200, 90, 70000, 143771\n1, NVIDIA H200, [N/A], 4, 143771",
        when={"compute-apps": "4711, python"},
    )
    found = by_code(list(check_gpus()))
    assert found["H140"].title.startswith("2 GPUs")
    assert (found["H141"].status, found["H142"].command) == ("warn", "kill 4711")


@pytest.mark.parametrize(("answer", "status"), [("0, 0\n1, 0", "ok"), ("0, 0\n1, 3", "fail"), ("0, [N/A]", "skip")])
def test_errors_in_a_gpus_memory_name_the_gpu(tool: Tool, answer: str, status: str) -> None:
    tool("nvidia-smi", "0, A, 40, 4, 9000\n1, A, 40, 4, 9000", when={"ecc.errors": answer})
    found = by_code(list(check_gpus()))["H143"]
    assert found.status == status
    assert status != "fail" or found.evidence == "GPU 1: 3"


@pytest.mark.parametrize(
    ("asked", "status"),
    [("0,1", "ok"), ("1,0", "ok"), ("GPU-5", "ok"), ("", "warn"), ("-1", "warn"), ("0,2", "fail"), ("0,0", "fail"), ("x", "fail")],
)
def test_visible_gpus(tool: Tool, monkeypatch: pytest.MonkeyPatch, asked: str, status: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", asked)
    tool("nvidia-smi", "0, A, 40, 4, 9000\n1, A, 40, 4, 9000")
    assert by_code(list(check_gpus()))["H144"].status == status


ECC = """        NPU ID                                   : {card}
        HBM Single Bit Error Count               : 12
        HBM Double Bit Error Count               : {count}
        HBM Double Bit Aggregate Total Err Cnt   : 7
"""


def test_errors_of_two_bits_in_an_npus_memory_fail_and_mended_ones_do_not(tool: Tool) -> None:
    tool("npu-smi", HEALTHY, when={"-i 0 -t ecc": ECC.format(card=0, count=0), "-i 1 -t ecc": ECC.format(card=1, count=2)})
    found = npus()["H135"]
    assert (found.status, found.evidence) == ("fail", "NPU 1: 2 errors of two bits")
    assert found.command == "npu-smi info -t ecc -i 1"
    tool("npu-smi", HEALTHY, when={"-t ecc": ECC.format(card=0, count=0)})
    assert npus()["H135"].status == "ok"
    tool("npu-smi", HEALTHY)
    assert npus()["H135"].status == "skip"


def test_a_broken_nvidia_driver_fails(tool: Tool) -> None:
    tool("nvidia-smi", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", code=9)
    (finding,) = check_gpus()
    assert finding.status == "fail"


LINK_UP, TLS_OFF, TLS_ON = (
    "link status: UP",
    "dev_id:0, tls switch[0](0:disable, 1:enable)",
    "dev_id:1, tls switch[1](0:disable, 1:enable)",
)


def network(conf: Path) -> dict[str, Finding]:
    return by_code(list(check_network(conf=conf)))


def test_a_port_that_is_down_and_tls_that_differs_fail(tool: Tool, tmp_path: Path) -> None:
    conf = tmp_path / "hccn.conf"
    conf.write_text("address_0=192.0.2.1\nnetmask_0=255.255.255.0\n")
    tool("npu-smi", HEALTHY)
    tool(
        "hccn_tool",
        when={"-i 0 -link": LINK_UP, "-i 1 -link": "link status: DOWN", "-i 0 -tls": TLS_OFF, "-i 1 -tls": TLS_ON},
    )
    found = network(conf)
    assert found["H161"].status == "warn"
    assert "[1]" in found["H161"].evidence
    assert (found["H162"].status, found["H162"].command) == ("fail", "hccn_tool -i 1 -link_stat -g")
    assert (found["H163"].status, found["H163"].evidence) == ("fail", "card 0: off, card 1: on")


def test_a_tool_that_may_not_ask_is_no_link_down(tool: Tool, tmp_path: Path) -> None:
    tool("npu-smi", HEALTHY)
    tool("hccn_tool", "permission denied")
    assert network(tmp_path / "none")["H162"].status == "unknown"


def test_a_command_past_its_limit_is_ended_with_its_children(tool: Tool) -> None:
    path = tool("stuck")
    path.write_text("#!/bin/sh\n/bin/sleep 600 & wait\n")
    output = run(["stuck"], timeout_s=0.2)
    assert output.timed_out
    assert output.found


@given(st.text())
def test_no_text_makes_a_parser_of_hccn_tool_fall(text: str) -> None:
    assert link_state(text) in ("UP", "DOWN", None)
    tls_switch(text)


@given(st.binary())
def test_no_bytes_make_the_parser_of_hccn_conf_fall(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "hccn.conf"
    path.write_bytes(content)
    assert all(isinstance(card, int) for card in parse_hccn_conf(path))
