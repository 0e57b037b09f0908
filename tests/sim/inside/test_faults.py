"""Faults strike at their rank and step, with the codes of the real thing. Hanging and dying ranks: tests/sim/test_ranks.py."""

from __future__ import annotations

import time

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch_npu._faults import _Watch

from unisono.simulator.fault import parse_fault


def run_steps(steps: int) -> None:
    """Some optimizer steps on an NPU."""
    model = torch.nn.Linear(2, 2).npu()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(1, 2, device="npu")).sum().backward()
        optimizer.step()


@pytest.fixture
def watch(request: pytest.FixtureRequest):
    watch = _Watch([parse_fault(request.param)])
    handle = register_optimizer_step_post_hook(watch.after_step)
    yield watch
    handle.remove()


@pytest.mark.parametrize(
    ("watch", "error", "text"),
    [
        ("rank=0,step=3,kind=oom", torch.OutOfMemoryError, "NPU out of memory"),
        ("rank=0,step=3,kind=ecc", RuntimeError, r"507054(.|\n)*ECC"),
        ("rank=0,step=3,kind=link", RuntimeError, r"507013(.|\n)*EI0013"),
    ],
    indirect=["watch"],
)
def test_a_fault_strikes_after_its_step_and_once(watch: _Watch, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        run_steps(5)
    assert watch._steps == 3
    run_steps(2)


@pytest.mark.parametrize("watch", ["rank=1,step=0,kind=ecc"], indirect=True)
def test_a_fault_of_another_rank_does_not_strike_here(watch: _Watch) -> None:
    run_steps(2)
    assert watch._steps == 2


@pytest.mark.parametrize("watch", ["rank=0,step=1,kind=slow:3"], indirect=True)
def test_a_slow_rank_waits_twice_the_time_of_a_step_when_its_factor_is_three(
    watch: _Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, waits = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", waits.append)
    watch._last_end = 0.0
    for now in (1.0, 1.5, 3.5):
        clock[0] = now
        watch.after_step()
    assert waits == [1.0, 4.0]
