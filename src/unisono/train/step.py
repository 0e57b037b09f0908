"""One optimizer update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unisono.data import Batch, mix_batch
from unisono.distributed.collectives import any_rank
from unisono.distributed.reduction import Votes
from unisono.train.streams import stream_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unisono.train.trainer import Trainer


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one global batch gave."""

    losses: Tensor
    """Mean loss of each local replica, on the device, [local replicas]."""
    skipped: bool
    """The update was left out, on every rank."""
    not_finite: bool
    """Some rank's loss was not a finite number."""
    stop: bool
    """Some rank was asked to stop."""


def train_step(trainer: Trainer, batches: Sequence[Batch]) -> StepResult:
    """One update from one batch a local replica. Collective: call on every rank."""
    pulse, step = trainer.pulse, trainer.state.position
    losses: list[Tensor] = []
    if trainer.watches_overflow:
        trainer.platform.take_overflow()  # an evaluation's, which is no fault of this step
    for position, batch in enumerate(batches):
        pulse.at("forward", step)
        loss = replica_loss(trainer, batch, position)
        losses.append(loss.detach())
        pulse.at("backward", step)
        scale = trainer.scaler.scale * (1.0 if trainer.scaler.enabled else trainer.reduction.loss_factor)
        trainer.reduction.backward(loss * scale, position, ballot(trainer, losses))
    pulse.at("reduce", step)
    trainer.reduction.finish()
    pulse.at("update", step)
    votes = trainer.reduction.votes() if trainer.reads_votes(step) else Votes(0, 0)
    overflow = unscale_and_clip(trainer)
    # A replica whose loss is not finite would poison every weight; a rank that alone skips would train another model.
    skipped = overflow or votes.not_finite > 0
    if not skipped:
        update(trainer)
    trainer.scaler.update(overflow=overflow)
    return StepResult(torch.stack(losses), skipped, votes.not_finite > 0, votes.stop > 0)


def replica_loss(trainer: Trainer, batch: Batch, position: int) -> Tensor:
    """Forward pass of one replica with its own random stream and its own batch-norm buffers."""
    replica = trainer.block[position]
    recipe = trainer.job.recipe
    trainer.buffers.activate(position)
    trainer.platform.seed(stream_seed(recipe.seed, trainer.state.position, replica))
    images, targets = mix_batch(
        batch.images,
        batch.labels,
        augment=recipe.augment,
        label_smoothing=recipe.loss.label_smoothing,
        num_classes=trainer.num_classes,
        seed=recipe.seed,
        step=trainer.state.position,
        replica=replica,
    )
    with trainer.precision.autocast():
        logits = trainer.forward(images)
    return trainer.loss(logits.float(), targets)


def ballot(trainer: Trainer, losses: Sequence[Tensor]) -> Votes:
    """This rank's votes; only the last replica's travel, when all losses are known."""
    if len(losses) < len(trainer.block):
        return Votes(0, 0)
    # On an accelerator reading the losses would empty its queue at every step; the device's own flag is added there.
    finite = not trainer.reads_every_step or bool(torch.isfinite(torch.stack(list(losses))).all())
    return Votes(int(trainer.stop_requested()), int(not finite))


def unscale_and_clip(trainer: Trainer) -> bool:
    """Bring gradients to their true size and limit their norm; True when fp16 overflowed. Equal on all ranks."""
    gradients = [p.grad for p in trainer.parameters if p.grad is not None]
    limit = trainer.job.recipe.optimizer.max_grad_norm
    if trainer.scaler.enabled:
        torch._foreach_mul_(gradients, trainer.reduction.loss_factor / trainer.scaler.scale)
    if limit is None and not trainer.scaler.enabled:
        return False
    if trainer.watches_overflow and any_rank(trainer.platform.take_overflow(), trainer.session.device):
        return True
    norm = torch.nn.utils.get_total_norm(gradients, foreach=True)
    if trainer.scaler.enabled and not bool(torch.isfinite(norm)):
        return True
    if limit is not None:
        torch.nn.utils.clip_grads_with_norm_(trainer.parameters, limit, norm, foreach=True)
    return False


def update(trainer: Trainer) -> None:
    """Set the rate that belongs to this step, then move the weights and their average."""
    rate = trainer.learning_rate()
    for group in trainer.optimizer.param_groups:
        group["lr"] = rate
    trainer.optimizer.step()
    if trainer.ema is not None:
        trainer.ema.update()
