"""A Job and a Session become a Trainer: every live object is made here, in order."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from unisono.data import DataSets, open_batches
from unisono.distributed.buffers import ReplicaBuffers
from unisono.distributed.reduction import build_reduction
from unisono.distributed.session import Session
from unisono.job.control import StopFlag
from unisono.job.plan import Job
from unisono.metrics.clock import TrainingClock
from unisono.metrics.writer import RunWriter
from unisono.models import build_model
from unisono.platforms.base import Platform
from unisono.train.checkpoint import CheckpointWriter
from unisono.train.ema import Ema
from unisono.train.loss import build_loss
from unisono.train.optimizer import build_optimizer
from unisono.train.precision import LossScaler, Precision
from unisono.train.pulse import Pulse
from unisono.train.report import Reporter
from unisono.train.run_folder import RunFolder
from unisono.train.state import TrainState
from unisono.train.trainer import Trainer


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What a trainer is given besides the job: where it lives and who listens."""

    platform: Platform
    folder: RunFolder
    pulse: Pulse
    stop: StopFlag
    reporter: Reporter
    record_every: int
    trace: bool
    stop_after: int | None = None


def build_trainer(job: Job, session: Session, sets: DataSets, around: Surroundings) -> Trainer:
    """Make every object of one rank, with a fresh state. Collective where the reduction is `fast`."""
    recipe, platform = job.recipe, around.platform
    block = job.replicas_of(session.rank)
    channels_last = recipe.model.channels_last and job.capabilities.channels_last
    model = build_model(
        recipe.model,
        num_classes=sets.num_classes,
        channels=sets.channels,
        image_size=recipe.data.image_size,
        seed=recipe.seed,
    )
    model = model.to(session.device).train()
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    buffers = ReplicaBuffers(model, len(block))
    reduction = build_reduction(recipe.reduction, model, replicas=recipe.replicas, session=session)
    optimizer = build_optimizer(
        model, recipe.optimizer, fused=platform.fused_optimizers(), torch_fused=job.capabilities.torch_fused_optimizers
    )
    batches = open_batches(
        recipe,
        sets,
        replicas=block,
        rank=session.rank,
        world_size=session.world_size,
        steps_per_epoch=job.steps_per_epoch,
        device=session.device,
        pinned_memory=job.capabilities.pinned_memory,
        channels_last=channels_last,
        worker_start_method=job.capabilities.worker_start_method,
        ranks_on_node=session.world.local_world_size,
    )
    state = TrainState()
    return Trainer(
        job=job,
        session=session,
        platform=platform,
        model=model,
        forward=torch.compile(reduction.module) if recipe.model.compile else reduction.module,
        parameters=[p for p in model.parameters() if p.requires_grad],
        block=block,
        num_classes=sets.num_classes,
        class_names=sets.class_names,
        reduction=reduction,
        buffers=buffers,
        optimizer=optimizer,
        precision=Precision(recipe.precision, session.device.type),
        scaler=LossScaler(recipe.precision),
        loss=build_loss(recipe.loss),
        ema=Ema(model, recipe.ema.decay) if recipe.ema.decay is not None else None,
        batches=batches,
        state=state,
        pulse=around.pulse,
        stop=around.stop,
        clock=TrainingClock(platform.synchronize),
        reporter=around.reporter,
        record_every=around.record_every,
        writer=RunWriter(around.folder.path, around.folder.resumed_at) if session.is_first else None,
        saver=CheckpointWriter(around.folder.checkpoints, recipe.checkpoint.keep) if session.is_first else None,
        trace=around.trace,
        stop_after=around.stop_after,
    )
