"""`unisono evaluate`: count a checkpoint's right answers, every image once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from unisono.errors import ExitCode


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("evaluate", rich_help_panel="Train")(evaluate)


def evaluate(
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint file, or a run folder (its best checkpoint).")],
    recipe: Annotated[
        str | None, typer.Option("--recipe", help="The recipe, where the run folder does not hold it.")
    ] = None,
    data_path: Annotated[Path | None, typer.Option("--data-path", help="Folder of the data set.")] = None,
    devices: Annotated[str, typer.Option("--devices", "-n", help="How many, or all.")] = "1",
    platform: Annotated[str, typer.Option("--platform", help="npu, cuda, cpu or auto.")] = "auto",
    simulate: Annotated[bool, typer.Option("--simulate", help="With --platform npu: simulated NPUs.")] = False,
    threads: Annotated[int | None, typer.Option("--threads", help="Threads a process. [default: 1 on CPUs]")] = None,
    use_ema: Annotated[
        bool, typer.Option("--ema/--no-ema", help="Use the averaged weights where there are any.")
    ] = True,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any key of the recipe: section.key=value.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The counts as JSON.")] = False,
) -> None:
    """Evaluate a checkpoint on the validation set, on any number of devices: the counts are the same."""
    options = dict(locals())
    from unisono.cli.evaluate_rank import run_rank
    from unisono.cli.train import device_count, thread_count
    from unisono.job.control import StopFlag
    from unisono.job.launch import LaunchRequest, launch, rank_command, read_worker_environment
    from unisono.job.world import World, read_world

    world = read_world()
    if world is None and device_count(options) == 1:
        world = World()
    if world is not None:
        sys.exit(run_rank(options, world, read_worker_environment(), StopFlag()))
    run_dir = checkpoint if checkpoint.is_dir() else checkpoint.resolve().parent.parent
    (run_dir / "logs").mkdir(exist_ok=True)
    request = LaunchRequest(
        command=rank_command(sys.argv[1:]),
        devices=device_count(options),
        run_dir=run_dir,
        threads=thread_count(options),
        max_restarts=0,
    )
    result = launch(request)
    if result.failure is not None:
        from unisono.cli.train_end import failure_screen

        failure_screen(run_dir, result)
    sys.exit(ExitCode.OK if result.ok else ExitCode.CRASHED)
