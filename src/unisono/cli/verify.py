"""`unisono verify`: the claim of equality, tried on the user's own machine."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unisono.cli import render
from unisono.errors import ExitCode, UserError

if TYPE_CHECKING:
    from unisono.train.compare import Comparison


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(
        "verify", rich_help_panel="Trust", context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
    )(verify)


def verify(
    context: typer.Context,
    recipe: Annotated[str, typer.Argument(help="A name of `unisono recipes`, or a path ending in .toml.")],
    steps: Annotated[int, typer.Option("--steps", min=1, help="Optimizer steps of each run.")] = 5,
    worlds: Annotated[
        str, typer.Option("--worlds", help="Numbers of devices to try; default: 1, 2, 4, 8 as far as there are.")
    ] = "",
    platform: Annotated[str, typer.Option("--platform", help="npu, cuda, cpu or auto.")] = "auto",
    simulate: Annotated[bool, typer.Option("--simulate", help="With --platform npu: simulated NPUs.")] = False,
    keep: Annotated[Path | None, typer.Option("--keep", help="Keep the runs in this folder.")] = None,
    json: Annotated[bool, typer.Option("--json", help="The answer as JSON.")] = False,
) -> None:
    """Train a few steps on 1, 2, 4, ... devices and compare every byte. Options of `train` may follow.

    Exit code 0 when all are equal, 1 when they part (it says where), 2 when a run could not be made.
    """
    _refuse_own_options(context.args)
    extra = [*context.args, "--platform", platform, *(["--simulate"] if simulate else [])]
    sizes = _world_sizes(worlds, recipe, platform, simulate)
    with _folder(keep) as folder:
        for size in sizes:
            if not json:
                render.note(f"running {steps} steps on {size} device{'s' if size > 1 else ''} ...")
            _train(recipe, size, steps, folder / f"world_{size}", extra)
        comparisons = _compare(folder, sizes)
    equal = all(comparison.equal for comparison in comparisons)
    if json:
        render.as_json(
            {
                "equal": equal,
                "worlds": sizes,
                "steps": steps,
                "comparisons": [asdict(comparison) for comparison in comparisons],
            }
        )
    else:
        _render(sizes, comparisons, equal, steps)
    raise typer.Exit(ExitCode.OK if equal else ExitCode.ANSWER_IS_NO)


def _refuse_own_options(extra: list[str]) -> None:
    """Options of `train` that verify gives to each run; one for all would make the runs the same."""
    for word in extra:
        option = word.partition("=")[0]
        if option in ("--devices", "--run-dir", "--record-every", "--resume") or word.startswith("-n"):
            raise UserError(
                "V106",
                f"{option} of the runs is verify's own choice",
                "each run has its own number of devices and its own folder, and starts afresh",
                "choose with --worlds 1,2,4 and --keep FOLDER",
            )


def _render(sizes: list[int], comparisons: list[Comparison], equal: bool, steps: int) -> None:
    render.line(f"{sizes[0]:>3} device   {comparisons[0].digests[0] if comparisons else '-'}")
    for size, comparison in zip(sizes[1:], comparisons, strict=True):
        render.line(f"{size:>3} devices  {comparison.digests[1]}  {'equal' if comparison.equal else 'DIFFERENT'}")
    if equal:
        render.line(
            f"equal: {steps} steps give the same weights, buffers and optimizer state on {', '.join(map(str, sizes))} devices"
        )
    for comparison in comparisons:
        if not comparison.equal:
            for text in comparison.lines():
                render.line(text)


def _world_sizes(worlds: str, recipe: str, platform: str, simulate: bool) -> list[int]:
    from unisono.recipe.load import load_recipe

    replicas = load_recipe(recipe).recipe.replicas
    if worlds:
        parts = worlds.split(",")
        numbers = [int(part) if part.strip().isdecimal() else 0 for part in parts]
        if min(numbers) < 1 or len(set(numbers)) < 2:
            raise UserError(
                "V102", f"--worlds {worlds}", "it is two or more different numbers of devices", "write --worlds 1,2,4"
            )
        if max(numbers) > replicas:
            raise UserError(
                "V102",
                f"--worlds {worlds}",
                f"the recipe has {replicas} replicas, and every device runs at least one",
                "ask for fewer devices",
            )
        return list(dict.fromkeys(numbers))
    if simulate or platform == "cpu":
        there = 4
    else:
        from unisono.platforms.select import select_platform

        selected = select_platform(platform)
        there = 4 if selected.name == "cpu" else selected.device_count()
    sizes = [size for size in (1, 2, 4, 8) if size <= min(there, replicas)]
    if len(sizes) < 2:
        raise UserError(
            "V103",
            f"{there} device here",
            "a comparison needs two numbers of devices",
            "use --platform cpu, or --worlds 1,2",
        )
    return sizes


def _train(recipe: str, size: int, steps: int, run_dir: Path, extra: list[str]) -> None:
    from unisono.job.launch import rank_command
    from unisono.train.run_folder import read_summary

    own = {"--devices": str(size), "--steps": str(steps), "--run-dir": str(run_dir), "--record-every": "1"}
    arguments = ["train", recipe, *(word for pair in own.items() for word in pair), "--trace", "--max-restarts", "0"]
    done = subprocess.run(
        rank_command([*arguments, *extra]), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    if done.returncode:
        for text in done.stderr.splitlines()[-20:]:
            render.note(text)
        raise UserError(
            "V104",
            f"the run on {size} devices ended with exit code {done.returncode}",
            "its own words are above",
            "mend that first; options after the recipe go to `unisono train`",
        )
    trained_on = read_summary(run_dir).get("world_size")
    if trained_on != size:
        raise UserError(
            "V106",
            f"the run meant for {size} devices used {trained_on}",
            "a comparison of equal numbers of devices would show nothing",
            "run it outside of torchrun, srun and mpirun, with their variables unset",
        )


def _compare(folder: Path, sizes: list[int]) -> list[Comparison]:
    from unisono.train.compare import compare_runs

    return [compare_runs(folder / f"world_{sizes[0]}", folder / f"world_{size}") for size in sizes[1:]]


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        try:
            keep.mkdir(parents=True, exist_ok=True)
            taken = any(keep.iterdir())
        except OSError as error:
            raise UserError(
                "V105", f"cannot keep runs in {keep}", error.strerror or str(error), "choose another folder"
            ) from error
        if taken:
            # Runs found there would be gone on with, and equal because they are old.
            raise UserError(
                "V105", f"{keep} is not empty", "a verification trains afresh", "name a new folder with --keep"
            )
        yield keep
    else:
        with tempfile.TemporaryDirectory(prefix="unisono-verify-") as folder:
            yield Path(folder)
