"""Time lost to failures runs until the job is back where it was."""

from __future__ import annotations

import time
from pathlib import Path

from unisono.job.outage import Outage
from unisono.train.pulse import Pulse


def test_an_outage_lasts_until_the_step_that_failed_is_reached_again(tmp_path: Path) -> None:
    told: list[Outage] = []
    outage = Outage(restarts=0, seconds_lost=3.0).failed(time.monotonic() - 50, step=7)
    pulse = Pulse(None, None, outage, told.append)
    for phase, step in (("start", 0), ("data", 4), ("update", 6)):
        pulse.at(phase, step)
        assert pulse.outage.since is not None
    pulse.at("data", 7)
    pulse.at("data", 8)
    assert len(told) == 1
    assert (told[0].restarts, told[0].since) == (1, None)
    assert 53 <= told[0].seconds_lost < 100


def test_a_failure_on_the_way_back_prolongs_the_outage_and_counts_as_a_restart() -> None:
    once = Outage().failed(10.0, step=7)
    twice = once.failed(20.0, step=5)
    assert (twice.restarts, twice.since, twice.step) == (2, 10.0, 7)


def test_a_failure_at_start_up_is_over_when_the_first_step_begins() -> None:
    pulse = Pulse(None, None, Outage().failed(time.monotonic(), step=0))
    pulse.at("start", 0)
    assert pulse.outage.since is not None
    pulse.at("data", 0)
    assert pulse.outage.since is None


def test_launcher_and_rank_tell_each_other_through_the_environment_and_a_file(tmp_path: Path) -> None:
    outage = Outage().failed(10.0, step=7)
    assert Outage.decode(outage.encode()) == outage
    assert Outage.decode("") == Outage()
    assert outage.heard(tmp_path) is outage
    ended = outage.over()
    ended.tell(tmp_path)
    assert outage.heard(tmp_path) == ended
