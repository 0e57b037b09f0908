"""One rank of `unisono evaluate`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unisono.cli import render
from unisono.errors import ExitCode, UserError

if TYPE_CHECKING:
    from unisono.job.control import StopFlag
    from unisono.job.launch import WorkerEnvironment
    from unisono.job.world import World
    from unisono.recipe.schema import Recipe


def run_rank(options: dict[str, Any], world: World, surroundings: WorkerEnvironment, stop: StopFlag) -> ExitCode:
    """Evaluate this rank's share; rank 0 tells the sum."""
    from unisono.cli.reporters import evaluation_text
    from unisono.cli.train import thread_count
    from unisono.cli.train_rank import choose_platform, ending_well
    from unisono.train.evaluate_run import EvaluationRequest, evaluate_checkpoint

    checkpoint, recipe = find(options)
    with ending_well(world, surroundings) as pulse:
        request = EvaluationRequest(
            recipe=recipe,
            checkpoint=checkpoint,
            data_path=options["data_path"],
            platform=choose_platform(options),
            world=world,
            threads=thread_count(options),
            use_ema=options["use_ema"],
        )
        evaluation, step = evaluate_checkpoint(request, pulse, stop)
        if world.rank == 0:
            if options["json"]:
                shares = {"top1_accuracy": evaluation.top1_accuracy, "top5_accuracy": evaluation.top5_accuracy}
                render.as_json({**asdict(evaluation), **shares, "checkpoint": str(checkpoint), "step": step})
            else:
                render.line(evaluation_text(evaluation, step, best=False))
    return ExitCode.OK


def find(options: dict[str, Any]) -> tuple[Path, Recipe]:
    """The checkpoint file and its recipe.

    Raises:
        UserError: C101 no such checkpoint, C108 no recipe beside it and none named.
    """
    from unisono.recipe.load import load_recipe, validate_recipe
    from unisono.train.checkpoint import numbered_checkpoints

    given: Path = options["checkpoint"]
    run_dir = given if given.is_dir() else given.resolve().parent.parent
    checkpoint = given
    if given.is_dir():
        best = given / "checkpoints" / "best.pt"
        numbered = numbered_checkpoints(given / "checkpoints")
        if not best.is_file() and not numbered:
            raise UserError(
                "C101",
                f"no checkpoint in {given}",
                "a run folder holds them in checkpoints/",
                "give a checkpoint file, or another folder",
            )
        checkpoint = best if best.is_file() else numbered[0]
    if options["recipe"] is not None:
        return checkpoint, load_recipe(options["recipe"], options["settings"] or []).recipe
    beside = run_dir / "recipe.json"
    if not beside.is_file():
        raise UserError(
            "C108",
            f"no recipe.json beside {given}",
            "a checkpoint is evaluated with the recipe it was trained by",
            "add --recipe NAME",
        )
    table = json.loads(beside.read_text(encoding="utf-8"))
    for text in options["settings"] or []:
        from unisono.recipe.load import parse_override, set_key

        set_key(table, *parse_override(text))
    return checkpoint, validate_recipe(table, beside)
