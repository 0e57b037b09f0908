"""Ranks of one machine map each other's blocks, or none does."""

from __future__ import annotations

import pytest
from helpers.mapping import beside_a_stranger, meeting_a_rank_that_is, with_a_rank_that_cannot, written_and_read
from helpers.platform import SIMULATED
from helpers.ranks import run_ranks

pytestmark = [
    pytest.mark.dist,
    pytest.mark.skipif(SIMULATED, reason="blocks are shared between CPU ranks; simulated NPUs exchange over HCCL"),
]


@pytest.mark.parametrize("world_size", [2, 3, 5])
def test_every_rank_reads_what_every_other_wrote_and_no_file_stays_open(world_size: int) -> None:
    for read, left_open in run_ranks(world_size, written_and_read):
        assert read == [[float(peer)] * (peer + 1) for peer in range(world_size)]
        assert left_open == []


@pytest.mark.parametrize("fault", ["no such call", "no memory", "another machine", "no more files"])
def test_where_one_rank_cannot_map_a_block_no_rank_uses_them(fault: str) -> None:
    assert run_ranks(3, with_a_rank_that_cannot, fault) == [False] * 3


def test_a_stranger_without_the_password_gets_no_memory_and_holds_nobody_up() -> None:
    assert run_ranks(2, beside_a_stranger) == [True, True]


def test_a_rank_that_is_gone_is_named_at_once() -> None:
    assert run_ranks(2, meeting_a_rank_that_is, "gone") == ["Connection closed by peer: rank 1 is gone", ""]


def test_a_rank_that_does_not_come_is_named_after_the_limit() -> None:
    assert run_ranks(2, meeting_a_rank_that_is, "late") == ["Timed out waiting 0.5 s for rank 1", ""]
