"""`unisono train`: parse, then start one process a device, or be one of them."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unisono.cli import render
from unisono.cli.train_end import conclude, first_line
from unisono.errors import ExitCode, UserError

if TYPE_CHECKING:
    from unisono.job.launch import LaunchRequest
    from unisono.recipe.load import LoadedRecipe

RECIPE, DEVICES, RUN, MACHINES, FAULTS = "Recipe", "Devices and numbers", "Run folder", "Several machines", "Faults"


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("train", rich_help_panel="Train")(train)


def train(
    recipe: Annotated[str, typer.Argument(help="A name of `unisono recipes`, or a path ending in .toml.")],
    data_path: Annotated[
        Path | None, typer.Option("--data-path", help="Folder of the data set.", rich_help_panel=RECIPE)
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="Another model, by torchvision's or timm's name.", rich_help_panel=RECIPE),
    ] = None,
    epochs: Annotated[
        float | None, typer.Option("--epochs", help="Train for so many epochs.", rich_help_panel=RECIPE)
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", help="Train for so many optimizer steps.", rich_help_panel=RECIPE)
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", help="Images a replica and step.", rich_help_panel=RECIPE)
    ] = None,
    replicas: Annotated[
        int | None, typer.Option("--replicas", help="Replicas, which the devices share out.", rich_help_panel=RECIPE)
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option("--learning-rate", help="Peak rate for the batch as it is (not scaled).", rich_help_panel=RECIPE),
    ] = None,
    no_lr_scaling: Annotated[
        bool,
        typer.Option(
            "--no-lr-scaling", help="Keep the recipe's rate whatever the global batch.", rich_help_panel=RECIPE
        ),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="Seed of weights, order, augmentation, dropout.", rich_help_panel=RECIPE),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any key: section.key=value. Repeatable.", rich_help_panel=RECIPE)
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch a missing public data set first.", rich_help_panel=RECIPE)
    ] = False,
    devices: Annotated[str, typer.Option("--devices", "-n", help="How many, or all.", rich_help_panel=DEVICES)] = "all",
    platform: Annotated[
        str, typer.Option("--platform", help="npu, cuda, cpu or auto.", rich_help_panel=DEVICES)
    ] = "auto",
    simulate: Annotated[
        bool, typer.Option("--simulate", help="With --platform npu: simulated NPUs.", rich_help_panel=DEVICES)
    ] = False,
    precision: Annotated[
        str | None, typer.Option("--precision", help="fp32, bf16, fp16, or apex's O0, O1, O2.", rich_help_panel=DEVICES)
    ] = None,
    reduction: Annotated[
        str | None, typer.Option("--reduction", help="exact or fast.", rich_help_panel=DEVICES)
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            help="Threads a process; on CPUs the digest depends on it. [default: 1 on CPUs]",
            rich_help_panel=DEVICES,
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Loader processes a rank.", rich_help_panel=DEVICES)
    ] = None,
    compile_model: Annotated[
        bool, typer.Option("--compile", help="Compile the model.", rich_help_panel=DEVICES)
    ] = False,
    bind_cores: Annotated[
        bool, typer.Option("--bind-cores", help="Give each rank its own share of the cores.", rich_help_panel=DEVICES)
    ] = False,
    runs_dir: Annotated[
        Path, typer.Option("--runs-dir", help="Where run folders are made.", rich_help_panel=RUN)
    ] = Path("runs"),
    run_dir: Annotated[
        Path | None,
        typer.Option("--run-dir", help="This very folder; goes on if it holds a checkpoint.", rich_help_panel=RUN),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume", help="auto (the newest run of this recipe) or a checkpoint file.", rich_help_panel=RUN
        ),
    ] = None,
    allow_changed: Annotated[
        list[str] | None,
        typer.Option("--allow-changed", help="Recipe key that may differ from the checkpoint's.", rich_help_panel=RUN),
    ] = None,
    record_every: Annotated[
        int, typer.Option("--record-every", min=1, help="Steps between records.", rich_help_panel=RUN)
    ] = 10,
    trace: Annotated[
        bool, typer.Option("--trace", help="Record a digest of the weights at every step.", rich_help_panel=RUN)
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="A few steps of everything: train, evaluate, save, resume.", rich_help_panel=RUN
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="The summary as JSON on standard output.", rich_help_panel=RUN)
    ] = False,
    modelzoo_log: Annotated[
        Path | None,
        typer.Option(
            "--modelzoo-log", help="Write the model zoo's <CaseName>.log into this folder.", rich_help_panel=RUN
        ),
    ] = None,
    case_name: Annotated[
        str | None, typer.Option("--case-name", help="CaseName of that log.", rich_help_panel=RUN)
    ] = None,
    network: Annotated[str | None, typer.Option("--network", help="Network of that log.", rich_help_panel=RUN)] = None,
    nnodes: Annotated[str, typer.Option("--nnodes", help="Machines, N or MIN:MAX.", rich_help_panel=MACHINES)] = "1",
    node_rank: Annotated[
        int, typer.Option("--node-rank", min=0, help="Number of this machine.", rich_help_panel=MACHINES)
    ] = 0,
    rdzv_endpoint: Annotated[
        str, typer.Option("--rdzv-endpoint", help="HOST:PORT where machines meet.", rich_help_panel=MACHINES)
    ] = "",
    max_restarts: Annotated[
        int | None,
        typer.Option(
            "--max-restarts",
            min=0,
            help="Restarts after a failure. [default: 3; 0 for one device]",
            rich_help_panel=FAULTS,
        ),
    ] = None,
    hang_timeout: Annotated[
        float,
        typer.Option(
            "--hang-timeout",
            min=1,
            help="Seconds without a sign of life after which a rank counts as hung.",
            rich_help_panel=FAULTS,
        ),
    ] = 180.0,
    elastic: Annotated[
        bool,
        typer.Option("--elastic", help="Go on without a device that fails twice in a row.", rich_help_panel=FAULTS),
    ] = False,
    fault: Annotated[
        list[str] | None,
        typer.Option("--fault", help="Fail on purpose: rank=1,step=7,phase=backward,kind=kill", rich_help_panel=FAULTS),
    ] = None,
    stop_after: Annotated[int | None, typer.Option("--stop-after", hidden=True)] = None,
) -> None:
    """Train RECIPE on every device there is.

    The same recipe, seed and threads give the same model on any number of devices, byte for byte.
    """
    options = dict(locals())
    from unisono.cli.train_rank import run_rank
    from unisono.job.control import StopFlag
    from unisono.job.launch import read_worker_environment
    from unisono.job.world import World, read_world

    stop = StopFlag()
    world = read_world()
    surroundings = read_worker_environment()
    if world is not None:
        stop.listen()
        sys.exit(run_rank(options, load(options), world, surroundings, stop))
    loaded = load(options)
    if dry_run:
        sys.exit(_dry_run(options, loaded))
    if _runs_here(options, loaded):
        stop.listen()
        sys.exit(run_rank(options, loaded, World(), surroundings, stop))
    sys.exit(_launch(options, loaded, sys.argv[1:]))


def load(options: dict[str, Any]) -> LoadedRecipe:
    """The recipe with all that the command line set.

    Raises:
        UserError: R1xx, or R106 when options exclude each other.
    """
    from unisono.recipe.load import load_recipe

    if options["epochs"] is not None and options["steps"] is not None:
        raise UserError("R106", "--epochs and --steps together", "a run has one length", "give one of them")
    named = {
        "model.name": options["model"],
        "train_for": _length(options),
        "per_replica_batch_size": options["batch_size"],
        "replicas": options["replicas"],
        "optimizer.learning_rate": options["learning_rate"],
        "optimizer.scale_learning_rate": False if options["no_lr_scaling"] else None,
        "seed": options["seed"],
        "precision": options["precision"],
        "reduction.name": options["reduction"],
        "data.workers": options["workers"],
        "model.compile": True if options["compile_model"] else None,
        "evaluate.every": "2 steps" if options["dry_run"] else None,
        "checkpoint.every": "2 steps" if options["dry_run"] else None,
    }
    return load_recipe(
        options["recipe"], options["settings"] or [], {key: value for key, value in named.items() if value is not None}
    )


def _length(options: dict[str, Any]) -> str | None:
    if options["dry_run"]:
        return "4 steps"
    if options["steps"] is not None:
        return f"{options['steps']} steps"
    return None if options["epochs"] is None else f"{options['epochs']:g} epochs"


def _runs_here(options: dict[str, Any], loaded: LoadedRecipe) -> bool:
    """One device on one machine needs no launcher, unless restarts are asked for."""
    return (
        device_count(options, loaded.recipe.replicas) == 1
        and options["nnodes"] == "1"
        and not options["max_restarts"]
        and not options["elastic"]
    )


def device_count(options: dict[str, Any], most: int | None = None) -> int:
    """How many processes to start here; `all` stops at `most`, the replicas there are to share out."""
    if options["devices"].isdigit() and options["platform"] == "cpu":
        count = int(options["devices"])
        if count > 0:
            return count
    from unisono.cli.train_rank import choose_platform
    from unisono.platforms.select import device_total

    there = device_total(choose_platform(options), options["devices"])
    return min(there, most) if most and options["devices"] == "all" else there


def _launch(options: dict[str, Any], loaded: LoadedRecipe, arguments: list[str]) -> ExitCode:
    from unisono.job.launch import launch, quieten_torch

    quieten_torch()
    request = _launch_request(options, loaded, arguments)
    if request.node_rank:
        render.note(
            f"machine {request.node_rank}: progress is told on the machine of {request.rdzv_endpoint}, logs are in {request.run_dir}"
        )

    def restarting(failure: Any, attempt: int, devices: int) -> None:
        render.note(
            f"rank {failure.rank} failed in {failure.phase} of step {failure.step}: {first_line(failure.message)}"
        )
        render.note(
            f"restart {attempt} of {request.max_restarts} on {devices} devices, from the newest whole checkpoint"
        )

    try:
        result = launch(request, restarting)
    except UserError:
        _forget(request.run_dir, options)
        raise
    return conclude(request, result, options)


def _forget(run_dir: Path, options: dict[str, Any]) -> None:
    """A run that was refused before its first checkpoint leaves no folder, unless the user named it."""
    if options["run_dir"] is None and not any((run_dir / "checkpoints").glob("*.pt")):
        shutil.rmtree(run_dir, ignore_errors=True)


def _launch_request(options: dict[str, Any], loaded: LoadedRecipe, arguments: list[str]) -> LaunchRequest:
    from unisono.job.launch import LaunchRequest, rank_command
    from unisono.train.run_folder import make_run_dir, newest_run_dir

    if options["download"]:
        _download(loaded, options)
    nodes = _nodes(options["nnodes"], options["node_rank"])
    count = device_count(options, loaded.recipe.replicas)
    threads = thread_count(options)
    if options["run_dir"] is not None:
        run_dir = options["run_dir"]
    elif options["resume"] == "auto":
        run_dir = newest_run_dir(options["runs_dir"], loaded.recipe.name)
    else:
        run_dir = make_run_dir(options["runs_dir"], loaded.recipe.name)
    (run_dir / "logs").mkdir(parents=True, exist_ok=True)
    environment = {}
    if options["simulate"]:
        from unisono.simulator import environment as simulated

        environment = simulated(devices=count)
    return LaunchRequest(
        command=rank_command(arguments),
        devices=count,
        run_dir=run_dir,
        threads=threads,
        max_restarts=3 if options["max_restarts"] is None else options["max_restarts"],
        hang_timeout_s=options["hang_timeout"],
        elastic=options["elastic"],
        nodes=nodes,
        node_rank=options["node_rank"],
        rdzv_endpoint=options["rdzv_endpoint"],
        environment=environment,
    )


def _nodes(text: str, node_rank: int) -> tuple[int, int]:
    fewest, _, most = text.partition(":")
    try:
        nodes = (int(fewest), int(most or fewest))
    except ValueError:
        nodes = (0, 0)
    if not 0 < nodes[0] <= nodes[1]:
        raise UserError(
            "J208", f"--nnodes {text}", "it is a number of machines, or MIN:MAX", "write --nnodes 4 or --nnodes 3:4"
        )
    if not 0 <= node_rank < nodes[1]:
        raise UserError(
            "J208",
            f"--node-rank {node_rank} with --nnodes {text}",
            "machines are numbered from 0, each with a number of its own",
            f"give a number from 0 to {nodes[1] - 1}; 0 to the machine of --rdzv-endpoint",
        )
    return nodes


def thread_count(options: dict[str, Any]) -> int:
    """Threads a process: as asked; else 1 on CPUs, where the digest depends on it, and the libraries' choice elsewhere."""
    if options["threads"] is not None:
        return int(options["threads"])
    from unisono.cli.train_rank import choose_platform

    on_cpu = options["platform"] == "cpu" or choose_platform(options).name == "cpu" or options["simulate"]
    return 1 if on_cpu else 0


def _download(loaded: LoadedRecipe, options: dict[str, Any]) -> None:
    from unisono.data.download import download

    if options["data_path"] is None:
        raise UserError("D190", "--download without --data-path", "the data set needs a place", "add --data-path DIR")
    download(loaded.recipe.data.name, options["data_path"])


def _dry_run(options: dict[str, Any], loaded: LoadedRecipe) -> ExitCode:
    """Two launches: one that stops after two of four steps, one that resumes and ends."""
    from unisono.job.launch import launch, quieten_torch

    quieten_torch()
    request = replace(_launch_request(options, loaded, sys.argv[1:]), max_restarts=0)
    first = launch(replace(request, command=[*request.command, "--stop-after", "2"]))
    if not first.ok:
        return conclude(request, first, options)
    render.note("stopped on purpose after 2 steps; resuming")
    ended = conclude(request, launch(request), options)
    if ended == ExitCode.OK:
        render.note(f"dry run: trained, evaluated, saved and resumed; its files are in {request.run_dir}")
    return ended
