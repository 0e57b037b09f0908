"""`unisono plan`: what a run would do, as arithmetic. Starts without torch."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from unisono.cli import render
from unisono.errors import UserError

# Images of the whole public sets, (training, validation). Sources: the data sets' own pages; ILSVRC 2012 for folders.
_PUBLISHED_SIZES = {
    "fashion_mnist": (60_000, 10_000),
    "cifar10": (50_000, 10_000),
    "cifar100": (50_000, 10_000),
    "image_folder": (1_281_167, 50_000),
}
_BACKENDS = {"cpu": "gloo", "cuda": "nccl", "npu": "hccl"}


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("plan", rich_help_panel="Train")(plan)


def plan(
    recipe: Annotated[str, typer.Argument(help="A name of `unisono recipes`, or a path ending in .toml.")],
    devices: Annotated[int, typer.Option("--devices", "-n", min=1, help="Ranks, over all machines.")] = 8,
    platform: Annotated[str, typer.Option("--platform", help="npu, cuda or cpu.")] = "npu",
    train_images: Annotated[
        int | None, typer.Option("--train-images", min=1, help="Instead of the public set's size.")
    ] = None,
    val_images: Annotated[
        int | None, typer.Option("--val-images", min=1, help="Instead of the public set's size.")
    ] = None,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads a process.")] = 1,
    settings: Annotated[list[str] | None, typer.Option("--set", help="Any key: section.key=value. Repeatable.")] = None,
    json: Annotated[bool, typer.Option("--json", help="The plan as JSON.")] = False,
) -> None:
    """Print batch, steps, learning rate and schedule of a run on any number of devices, without a device."""
    from unisono.job.capabilities import Capabilities
    from unisono.job.plan import plan as decide
    from unisono.recipe.load import load_recipe

    path = Path(recipe)
    loaded = load_recipe(str(path) if path.suffix == ".toml" else recipe, settings or [])
    if platform not in _BACKENDS:
        raise UserError.unknown("P101", "platform", platform, _BACKENDS)
    data = loaded.recipe.data
    published = _PUBLISHED_SIZES.get(data.name, (data.synthetic_train_images, data.synthetic_val_images))
    able = Capabilities(
        fp16=True,
        bf16=True,
        overflow="inf_nan",
        channels_last=True,
        pinned_memory=True,
        torch_fused_optimizers=True,
        reads_are_free=False,
        worker_start_method="forkserver",
    )
    job = decide(
        loaded.recipe,
        world_size=devices,
        platform=platform,
        backend=_BACKENDS[platform],
        simulated=False,
        capabilities=able,
        threads=threads,
        train_images=train_images or published[0],
        val_images=val_images or published[1],
    )
    if json:
        render.as_json({**asdict(job) | {"recipe": loaded.recipe.model_dump(mode="json")}, "lines": job.lines()})
    else:
        for text in job.lines():
            render.line(text)
