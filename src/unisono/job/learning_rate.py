"""The learning rate: scaled to the global batch once, then a pure function of optimizer steps taken."""

from __future__ import annotations

import math

from unisono.recipe.schema import OptimizerRecipe, ScheduleRecipe


def scaled_peak_learning_rate(optimizer: OptimizerRecipe, global_batch_size: int) -> tuple[float, str]:
    """The peak rate for a global batch, and the arithmetic in words.

    Linear scaling: the rate grows with the batch it belongs to (Goyal et al., "Accurate, large minibatch SGD", 2017).
    """
    rate, base = optimizer.learning_rate, optimizer.learning_rate_global_batch_size
    if base is None or base == global_batch_size:
        return rate, f"as given for a global batch of {global_batch_size}"
    if not optimizer.scale_learning_rate:
        return rate, f"kept, though it was chosen for a global batch of {base} and this one is {global_batch_size}"
    scaled = rate * global_batch_size / base
    return scaled, f"{rate:g} x {global_batch_size} / {base}, scaled with the global batch"


def learning_rate(
    schedule: ScheduleRecipe,
    *,
    peak: float,
    step: int,
    total_steps: int,
    steps_per_epoch: int,
    global_batch_size: int,
) -> float:
    """The rate of the update that follows `step` updates (0 for the first).

    Warm-up rises linearly from `lr_warmup_start_factor` of the peak, and reaches the peak at its end. The cosine
    falls over the steps that follow warm-up and gives exactly `final_factor` of the peak to the last update.
    """
    warmup = schedule.lr_warmup.steps(steps_per_epoch, global_batch_size)
    if step < warmup:
        start = schedule.lr_warmup_start_factor
        return peak * (start + (1 - start) * step / warmup)
    if schedule.name == "step":
        passed = sum(step >= milestone.steps(steps_per_epoch, global_batch_size) for milestone in schedule.milestones)
        return float(peak * schedule.gamma**passed)
    if schedule.name == "exponential":
        period = schedule.period.steps(steps_per_epoch, global_batch_size)
        return float(peak * schedule.gamma ** (step // period))
    if schedule.name == "cosine":
        last = max(1, total_steps - 1 - warmup)
        share = min(1.0, (step - warmup) / last)
        final = schedule.final_factor
        return peak * (final + (1 - final) * (1 + math.cos(math.pi * share)) / 2)
    return peak
