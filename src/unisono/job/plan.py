"""Recipe + World + Capabilities + data set size -> Job: what will happen on this machine, as arithmetic. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from unisono.errors import UserError
from unisono.job.capabilities import Capabilities
from unisono.job.learning_rate import scaled_peak_learning_rate
from unisono.job.replicas import share_out
from unisono.recipe.schema import Recipe


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """Everything that is decided before a device is touched."""

    recipe: Recipe
    world_size: int
    platform: str
    backend: str
    simulated: bool
    capabilities: Capabilities
    threads: int
    train_images: int
    val_images: int
    steps_per_epoch: int
    total_steps: int
    evaluate_every_steps: int
    """0 for never."""
    checkpoint_every_steps: int
    """0 for the last step alone."""
    peak_learning_rate: float
    learning_rate_reason: str
    """The arithmetic behind the rate, in words."""

    @property
    def dropped_images(self) -> int:
        """Training images of an epoch that do not fill a global batch."""
        return self.train_images - self.steps_per_epoch * self.recipe.global_batch_size

    def replicas_of(self, rank: int) -> range:
        """The replicas that a rank runs, one after the other."""
        return share_out(self.recipe.replicas, self.world_size)[rank]

    def lines(self) -> list[str]:
        """The plan as a person reads it, one sum a line."""
        recipe = self.recipe
        shares = sorted({len(block) for block in share_out(recipe.replicas, self.world_size)}, reverse=True)
        each = " or ".join(str(share) for share in shares)
        device = "device" if self.world_size == 1 else "devices"
        simulated = " (simulated)" if self.simulated else ""
        epochs = self.total_steps / self.steps_per_epoch
        images_seen = self.total_steps * recipe.global_batch_size
        return [
            f"{recipe.name}: {recipe.model.name} on {recipe.data.name}, {self.world_size} {self.platform} {device}{simulated}, "
            f"{self.backend if self.world_size > 1 else 'no'} communication, {recipe.reduction.name} reduction",
            f"global batch {recipe.global_batch_size} = {recipe.per_replica_batch_size} x {recipe.replicas} replicas on "
            f"{self.world_size} {device} ({each} each)",
            f"{self.train_images:,} images / {recipe.global_batch_size} -> {self.steps_per_epoch} steps an epoch "
            f"({self.dropped_images} images dropped)",
            f"{epochs:g} epochs x {self.steps_per_epoch} = {self.total_steps} steps, {images_seen:,} images seen",
            f"lr {self.peak_learning_rate:g}: {self.learning_rate_reason}; {_schedule_words(recipe)}",
            f"precision {_precision_words(recipe)}, {self.threads} thread{'s' if self.threads > 1 else ''} a process, seed {recipe.seed}",
            f"{_every(self.evaluate_every_steps, f'evaluation of {self.val_images:,} images', 'no evaluation')}, "
            f"{_every(self.checkpoint_every_steps, 'checkpoint', 'one checkpoint, at the end')}, {recipe.checkpoint.keep} kept",
        ]


def plan(
    recipe: Recipe,
    *,
    world_size: int,
    platform: str,
    backend: str,
    simulated: bool,
    capabilities: Capabilities,
    threads: int,
    train_images: int,
    val_images: int,
) -> Job:
    """Decide a run.

    Raises:
        UserError: J101 more ranks than replicas, J102 a data set smaller than one global batch, J103 a precision
            that the platform lacks, J104 options that exclude each other.
    """
    _refuse(recipe, world_size, platform, capabilities, train_images)
    steps_per_epoch = train_images // recipe.global_batch_size
    total_steps = recipe.train_for.steps(steps_per_epoch, recipe.global_batch_size)
    if total_steps < 1:
        raise UserError(
            "J105",
            f"train_for = {recipe.train_for} is no step at all",
            "a run takes at least one step",
            "set train_for to at least '1 steps'",
        )
    rate, reason = scaled_peak_learning_rate(recipe.optimizer, recipe.global_batch_size)
    evaluate_every = recipe.evaluate.every.steps(steps_per_epoch, recipe.global_batch_size)
    checkpoint_every = recipe.checkpoint.every.steps(steps_per_epoch, recipe.global_batch_size)
    return Job(
        recipe=recipe,
        world_size=world_size,
        platform=platform,
        backend=backend,
        simulated=simulated,
        capabilities=capabilities,
        threads=threads,
        train_images=train_images,
        val_images=val_images,
        steps_per_epoch=steps_per_epoch,
        total_steps=total_steps,
        evaluate_every_steps=evaluate_every,
        checkpoint_every_steps=checkpoint_every,
        peak_learning_rate=rate,
        learning_rate_reason=reason,
    )


def _refuse(recipe: Recipe, world_size: int, platform: str, capabilities: Capabilities, train_images: int) -> None:
    if world_size > recipe.replicas:
        raise UserError(
            "J101",
            f"{world_size} ranks for {recipe.replicas} replicas",
            "every rank runs at least one replica, and the recipe has no more of them",
            f"use --devices {recipe.replicas} at most, or --replicas {world_size} (that makes the global batch "
            f"{world_size * recipe.per_replica_batch_size} and another model)",
        )
    if train_images < recipe.global_batch_size:
        raise UserError(
            "J102",
            f"{train_images} training images are less than one global batch of {recipe.global_batch_size}",
            f"a step takes {recipe.per_replica_batch_size} x {recipe.replicas} replicas = {recipe.global_batch_size} images",
            f"set per_replica_batch_size to {max(1, train_images // recipe.replicas)} or less, or bring more images",
        )
    compute = recipe.precision.compute
    able = {"fp32": True, "bf16": capabilities.bf16, "fp16": capabilities.fp16}
    if not able[compute]:
        others = ", ".join(name for name, ok in able.items() if ok)
        raise UserError(
            "J103",
            f"precision {compute} on {platform}",
            "this platform does not train in it",
            f"use --precision with one of: {others}",
        )
    if recipe.reduction.compress != "none" and recipe.reduction.name == "exact":
        raise UserError(
            "J104",
            "reduction.compress with the exact reduction",
            "rounding gradients on the way breaks equality",
            'use --reduction fast, or compress = "none"',
        )


def _schedule_words(recipe: Recipe) -> str:
    schedule = recipe.schedule
    shape = {
        "constant": "constant",
        "step": f"x {schedule.gamma:g} after {', '.join(str(m) for m in schedule.milestones)}",
        "exponential": f"x {schedule.gamma:g} every {schedule.period}",
        "cosine": f"cosine to {schedule.final_factor:g} of it",
    }[schedule.name]
    return shape if schedule.lr_warmup.count == 0 else f"warm-up over {schedule.lr_warmup}, then {shape}"


def _every(steps: int, what: str, never: str) -> str:
    return f"{what} every {steps} steps" if steps else never


def _precision_words(recipe: Recipe) -> str:
    precision = recipe.precision
    if precision.compute != "fp16":
        return precision.compute
    scale = "dynamic loss scale" if precision.loss_scale == "dynamic" else f"loss scale {precision.loss_scale:g}"
    return f"fp16 with a {scale}"
