"""The self-tests' verdicts: what is planted in an answer is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from unisono.doctor import selftest
from unisono.doctor.selftest import Machines, _collective, _known_digest, _together

ROW = {
    "name": "all_reduce",
    "wrong": [],
    "smallest_ms": 0.1,
    "largest_mb": 64.0,
    "largest_ms": 67.108864,
    "sizeless": False,
}


def node(**changes: Any) -> dict[str, Any]:
    return {"node": 0, "card": "eth0", "torch": "2.14.1", "clock_s": 0.0} | changes


def test_a_wrong_result_names_its_sizes() -> None:
    finding = _collective("H181", ROW | {"wrong": [256, 16384]})
    assert (finding.status, finding.evidence) == ("fail", "sizes in bytes: 256, 16384")


def test_bandwidth_is_bytes_over_seconds() -> None:
    assert "1.00 GB/s" in _collective("H181", ROW).evidence


def test_what_moves_no_buffer_shows_no_bandwidth() -> None:
    assert _collective("H187", ROW | {"sizeless": True}).evidence == ""


def test_clocks_apart_cards_apart_and_builds_apart_are_named() -> None:
    nodes = [node(), node(node=1, card="eth1", torch="2.13.0", clock_s=-7.5)]
    found = {finding.code: finding for finding in _together(nodes)}
    assert [found[code].status for code in ("H192", "H193", "H194")] == ["warn", "warn", "fail"]
    assert "machine 1: -7.500 s" in found["H192"].evidence


def test_machines_that_agree_are_ok_and_the_loopback_of_the_first_is_no_other_card() -> None:
    nodes = [node(card="lo"), node(node=1, clock_s=0.01), node(node=2)]
    assert [finding.status for finding in _together(nodes)] == ["ok", "ok", "ok"]


def test_several_machines_meet_at_the_first() -> None:
    assert Machines().arguments() == ["--standalone"]
    assert "--master-addr=n0" in Machines(2, 1, "n0:29500").arguments()
    assert "--master-port=29500" in Machines(2, 1, "n0:29500").arguments()


def test_a_digest_is_held_against_the_one_on_record_for_this_torch_and_processor() -> None:
    (kernels, digest), *_ = json.loads((Path(selftest.__file__).parent / "knowledge" / "digests.json").read_text()).items()
    assert _known_digest(digest, kernels).status == "ok"
    other = _known_digest("0" * 64, kernels)
    assert other.status == "warn"
    assert digest[:16] in other.evidence
    assert _known_digest(digest, "2.11.0, NEON, aarch64").status == "unknown"
    assert _known_digest(digest, "").status == "unknown"
