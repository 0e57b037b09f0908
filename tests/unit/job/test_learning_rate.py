"""The learning rate: linear scaling to the global batch, and schedules as pure functions of steps taken (law 5)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch.optim import lr_scheduler

from unisono.job.learning_rate import learning_rate, scaled_peak_learning_rate
from unisono.recipe.schema import OptimizerRecipe, ScheduleRecipe

STEPS_PER_EPOCH, TOTAL = 5, 40


def rates(peak: float = 0.4, total: int = TOTAL, **schedule: Any) -> list[float]:
    recipe = ScheduleRecipe.model_validate(schedule)
    return [
        learning_rate(
            recipe, peak=peak, step=step, total_steps=total, steps_per_epoch=STEPS_PER_EPOCH, global_batch_size=64
        )
        for step in range(total)
    ]


def torch_rates(make: Any, peak: float = 0.4) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=peak)
    schedule = make(optimizer)
    found = []
    for _ in range(TOTAL):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return found


def test_step_is_torchs_multistep() -> None:
    ours = rates(name="step", milestones=["2 epochs", "25 steps", "1920 images"], gamma=0.2)
    theirs = torch_rates(lambda o: lr_scheduler.MultiStepLR(o, milestones=[10, 25, 30], gamma=0.2))
    assert ours == pytest.approx(theirs)


def test_exponential_is_torchs_steplr_of_one_period() -> None:
    ours = rates(name="exponential", gamma=0.973, period="2 epochs")
    assert ours == pytest.approx(torch_rates(lambda o: lr_scheduler.StepLR(o, step_size=10, gamma=0.973)))


def test_cosine_is_torchs_and_gives_the_last_step_exactly_the_final_share() -> None:
    ours = rates(name="cosine", final_factor=0.1)
    theirs = torch_rates(lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=TOTAL - 1, eta_min=0.04))
    assert ours == pytest.approx(theirs)
    assert ours[0] == 0.4
    assert ours[-1] == 0.4 * 0.1
    assert rates(name="cosine")[-1] == 0.0


def test_warmup_rises_in_a_line_and_reaches_the_peak_at_its_end() -> None:
    ours = rates(name="cosine", lr_warmup="2 epochs", lr_warmup_start_factor=0.5)
    assert ours[0] == pytest.approx(0.2)
    steps = [after - before for before, after in pairwise(ours[:11])]
    assert steps == pytest.approx([0.02] * 10)
    assert ours[10] == 0.4
    assert max(ours) == 0.4
    assert ours[-1] == 0.0


def test_constant_stays() -> None:
    assert rates(name="constant") == [0.4] * TOTAL


@pytest.mark.parametrize("name", ["constant", "cosine", "exponential"])
def test_a_run_of_one_step_has_a_rate(name: str) -> None:
    assert rates(total=1, name=name) == [0.4]


def test_a_warmup_longer_than_the_run_only_rises() -> None:
    ours = rates(total=4, name="cosine", lr_warmup="10 epochs")
    assert ours == sorted(ours)
    assert all(0 < rate < 0.4 for rate in ours)


def test_the_rate_grows_with_the_batch_and_the_reason_holds_the_sum() -> None:
    optimizer = OptimizerRecipe(name="sgd", learning_rate=0.1, learning_rate_global_batch_size=128)
    rate, reason = scaled_peak_learning_rate(optimizer, 512)
    assert rate == pytest.approx(0.4)
    assert "0.1 x 512 / 128" in reason


def test_the_rate_stays_at_its_own_batch_and_where_scaling_is_refused() -> None:
    own = OptimizerRecipe(name="sgd", learning_rate=0.1, learning_rate_global_batch_size=128)
    assert scaled_peak_learning_rate(own, 128)[0] == 0.1
    assert scaled_peak_learning_rate(own.model_copy(update={"learning_rate_global_batch_size": None}), 7)[0] == 0.1
    kept, reason = scaled_peak_learning_rate(own.model_copy(update={"scale_learning_rate": False}), 512)
    assert kept == 0.1
    assert "128" in reason
    assert "512" in reason
