"""One rank of an evaluation outside training: a checkpoint, the validation set, the same counts on any world."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from unisono.data import open_batches, open_data_sets
from unisono.distributed.session import open_session
from unisono.errors import ExitCode, UserError
from unisono.job.control import StopFlag
from unisono.job.world import World
from unisono.models import build_model
from unisono.platforms.base import Platform
from unisono.recipe.schema import Recipe
from unisono.train.checkpoint import read_whole
from unisono.train.evaluate import Evaluation, evaluate
from unisono.train.pulse import Pulse
from unisono.train.snapshot import load_weights, refuse_other_classes


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationRequest:
    """What one rank was asked to evaluate."""

    recipe: Recipe
    checkpoint: Path
    data_path: Path | None
    platform: Platform
    world: World
    threads: int
    use_ema: bool = True
    collective_timeout_s: float = 600.0


def evaluate_checkpoint(request: EvaluationRequest, pulse: Pulse, stop: StopFlag) -> tuple[Evaluation, int]:
    """Count the validation set; returns the counts, equal on all ranks, and the checkpoint's step. Collective.

    Raises:
        UserError: C1xx and C2xx for the checkpoint, D for the data, J209 when stopped before the end.
    """
    if request.threads:
        torch.set_num_threads(request.threads)
    platform, recipe, world = request.platform, request.recipe, request.world
    payload = read_whole(request.checkpoint)
    device = platform.activate(world.local_rank, world.local_world_size)
    sets = open_data_sets(recipe, request.data_path)
    refuse_other_classes(payload["class_names"], sets.class_names)
    model = build_model(
        recipe.model,
        num_classes=sets.num_classes,
        channels=sets.channels,
        image_size=recipe.data.image_size,
        seed=recipe.seed,
    )
    load_weights(model, payload["model"], recipe.model.name)
    if request.use_ema and payload["ema"] is not None:
        model.load_state_dict(payload["ema"]["weights"], strict=False)
    channels_last = recipe.model.channels_last and platform.capabilities.channels_last
    model = model.to(device)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    with open_session(world, device, platform.backend, request.collective_timeout_s) as session:
        batches = open_batches(
            recipe,
            sets,
            replicas=range(0),
            rank=session.rank,
            world_size=session.world_size,
            steps_per_epoch=1,
            device=device,
            pinned_memory=platform.capabilities.pinned_memory,
            channels_last=channels_last,
            worker_start_method=platform.capabilities.worker_start_method,
            ranks_on_node=world.local_world_size,
        )

        def go_on() -> bool:
            pulse.at("evaluate", 0)
            return not stop.requested

        found = evaluate(model, batches, len(sets.val), device, go_on)
        batches.close()
    if found is None:
        raise UserError(
            "J209", "stopped while evaluating", "a signal asked for it", "start again", exit_code=ExitCode.STOPPED
        )
    return found, int(payload["state"]["step"])
