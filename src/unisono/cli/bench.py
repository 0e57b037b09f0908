"""`unisono bench`: scaling, batch, precision, input, collectives, compare, forecast."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unisono.cli import render
from unisono.errors import ExitCode, UserError

if TYPE_CHECKING:
    from unisono.bench.case import Case

group = typer.Typer(
    no_args_is_help=True,
    help="Measure scaling, batch sizes, precision, input and collectives; forecast larger machines.",
)

Recipe = Annotated[str, typer.Argument(help="A name of `unisono recipes`, or a path ending in .toml.")]
DataPath = Annotated[Path | None, typer.Option("--data-path", help="Folder of the data set.")]
Steps = Annotated[int, typer.Option("--steps", min=8, help="Optimizer steps of each run; the first 5 warm up.")]
Repeats = Annotated[int, typer.Option("--repeats", min=1, help="Runs of each case, interleaved.")]
Threads = Annotated[int, typer.Option("--threads", min=1, help="Threads a process, equal in all runs.")]
PlatformName = Annotated[str, typer.Option("--platform", help="npu, cuda or cpu.")]
BatchSize = Annotated[int | None, typer.Option("--batch-size", min=1, help="Images a replica.")]
Output = Annotated[Path | None, typer.Option("--output", help="Write the result as JSON here.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="Any key of the recipe: section.key=value.")]


def register(app: typer.Typer) -> None:
    """Add the subcommands."""
    app.add_typer(group, name="bench", rich_help_panel="Trust")


@group.command()
def scaling(
    recipe: Recipe,
    devices: Annotated[str, typer.Option("--devices", help="Numbers of devices, the first is the base.")] = "1,2",
    kind: Annotated[str, typer.Option("--kind", help="weak, strong or both.")] = "weak",
    data_path: DataPath = None,
    steps: Steps = 20,
    repeats: Repeats = 3,
    threads: Threads = 1,
    platform: PlatformName = "cpu",
    batch_size: BatchSize = None,
    precision: Annotated[str | None, typer.Option("--precision", help="fp32, bf16 or fp16.")] = None,
    reduction: Annotated[str | None, typer.Option("--reduction", help="exact or fast.")] = None,
    settings: Settings = None,
    output: Output = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page with plots here.")] = None,
) -> None:
    """Weak and strong scaling: interleaved repeats, medians, spread, where the time of each rank goes."""
    from unisono.bench.case import interleave, machine
    from unisono.bench.scaling import efficiencies, strong_cases, table, to_plain, weak_cases

    counts = _counts(devices)
    base = _case(recipe, counts[0], steps, threads, platform, batch_size, precision, reduction, data_path, settings)
    if kind not in ("weak", "strong", "both"):
        raise UserError.unknown("B108", "kind of scaling", kind, ("weak", "strong", "both"))
    before, measured, series = machine(), {}, []
    for one in ("weak", "strong") if kind == "both" else (kind,):
        cases = weak_cases(base, counts) if one == "weak" else strong_cases(base, counts, _replicas(recipe))
        runs = interleave(
            cases, repeats, lambda case, repeat: render.note(f"{case.devices} devices, run {repeat + 1} of {repeats}")
        )
        series += runs
        measured[one] = efficiencies(runs)
        for text in table(one, measured[one]):
            render.line(text)
    render.line(_machine_line(before))
    command = f"unisono bench scaling {recipe} --devices {devices} --kind {kind} --steps {steps} --repeats {repeats}"
    command += f" --threads {threads} --platform {platform}"
    _write(
        output,
        {
            "command": command,
            "machine": before,
            "series": [s.to_plain() for s in series],
            "rows": {k: to_plain(v) for k, v in measured.items()},
        },
    )
    if html is not None:
        from unisono.bench.report import page

        html.write_text(page(f"Scaling of {recipe}", measured, before, command), encoding="utf-8")
        render.note(f"page written to {html}")


@group.command()
def batch(
    recipe: Recipe,
    sizes: Annotated[str, typer.Option("--sizes", help="Images a replica, in rising order.")] = "4,8,16,32",
    data_path: DataPath = None,
    steps: Steps = 10,
    repeats: Repeats = 3,
    threads: Threads = 1,
    platform: PlatformName = "cpu",
    settings: Settings = None,
    output: Output = None,
) -> None:
    """Speed on one device by batch size, until memory ends it."""
    from dataclasses import replace

    base = _case(recipe, 1, steps, threads, platform, None, None, None, data_path, settings)
    _sweep(
        [replace(base, per_replica_batch_size=size) for size in _counts(sizes)],
        repeats,
        lambda case: f"batch {case.per_replica_batch_size}",
        output,
    )


@group.command()
def precision(
    recipe: Recipe,
    names: Annotated[str, typer.Option("--names", help="Which to try.")] = "fp32,bf16",
    data_path: DataPath = None,
    steps: Steps = 10,
    repeats: Repeats = 3,
    threads: Threads = 1,
    platform: PlatformName = "cpu",
    batch_size: BatchSize = None,
    settings: Settings = None,
    output: Output = None,
) -> None:
    """Speed on one device by precision."""
    from dataclasses import replace

    base = _case(recipe, 1, steps, threads, platform, batch_size, None, None, data_path, settings)
    _sweep(
        [replace(base, precision=name.strip()) for name in names.split(",")],
        repeats,
        lambda case: str(case.precision),
        output,
    )


@group.command("input")
def input_(
    recipe: Recipe,
    data_path: DataPath = None,
    workers: Annotated[str, typer.Option("--workers", help="Numbers of loader processes.")] = "0,1,2",
    steps: Annotated[int, typer.Option("--steps", min=1, help="Batches to load.")] = 20,
    settings: Settings = None,
    output: Output = None,
) -> None:
    """The loader alone: images a second, and where one image's time goes."""
    from unisono.bench.case import machine
    from unisono.bench.input import measure_input, where_time_goes
    from unisono.recipe.load import load_recipe

    loaded = load_recipe(recipe, settings or []).recipe
    rows = measure_input(loaded, data_path, _counts(workers, least=0), steps)
    render.line("workers  images/s  a worker")
    for row in rows:
        render.line(f"{row['workers']:>7}  {row['images_per_second']:>8,.0f}  {row['a_worker']:>8,.0f}")
    parts = where_time_goes(loaded, data_path)
    for name, milliseconds in (parts or {}).items():
        render.line(f"{name}: {milliseconds:.2f} ms an image")
    render.line(_machine_line(machine()))
    _write(output, {"rows": rows, "ms_an_image": parts, "machine": machine()})


@group.command()
def collectives(
    devices: Annotated[int, typer.Option("--devices", "-n", min=2, help="How many.")] = 2,
    platform: PlatformName = "cpu",
    output: Output = None,
) -> None:
    """all-reduce, all-to-all, all-gather and the exact sum by size: time, algorithm and bus bandwidth."""
    from unisono.bench.case import machine
    from unisono.bench.collectives import measure_collectives

    rows = measure_collectives(devices, platform)
    render.line("collective        bytes        ms  algorithm GB/s  bus GB/s")
    for row in rows:
        render.line(
            f"{row['name']:<12} {row['bytes']:>10,}  {row['ms']:>8.3f}  {row['algorithm_gb_s']:>14.3f}  {row['bus_gb_s']:>8.3f}"
        )
    render.line(_machine_line(machine()))
    _write(output, {"devices": devices, "platform": platform, "rows": rows, "machine": machine()})


@group.command("compare")
def compare_(
    before: Annotated[Path, typer.Argument(help="A file that --output wrote.")],
    after: Annotated[Path, typer.Argument(help="Another one.")],
) -> None:
    """Faster, slower, or within the noise. Exit code 1 when something got slower."""
    from unisono.bench.compare import compare_files

    verdicts = compare_files(before, after)
    for one in verdicts:
        render.line(
            f"{one.name}: {one.before:,.1f} -> {one.after:,.1f} images/s, {one.change:+.1%} (noise {one.noise:.1%}): {one.word}"
        )
    raise typer.Exit(ExitCode.ANSWER_IS_NO if any(one.word == "slower" for one in verdicts) else ExitCode.OK)


@group.command()
def forecast(
    recipe: Recipe,
    devices: Annotated[str, typer.Option("--devices", help="Numbers of devices.")] = "8,64,1024",
    link: Annotated[str, typer.Option("--link", help="NAME=GB/s:microseconds, over the presets.")] = "hccs,roce",
    inside: Annotated[str, typer.Option("--inside", help="The link in a machine.")] = "hccs",
    between: Annotated[str, typer.Option("--between", help="The link between machines.")] = "roce",
    devices_a_node: Annotated[int, typer.Option("--devices-a-node", min=1, help="Devices of one machine.")] = 8,
    step_time_ms: Annotated[
        float | None,
        typer.Option("--step-time-ms", min=0.001, help="Measured on one device; measured here when left out."),
    ] = None,
    parameters: Annotated[
        int | None, typer.Option("--parameters", min=1, help="Weights; counted when left out.")
    ] = None,
    data_path: DataPath = None,
    platform: PlatformName = "cpu",
    threads: Threads = 1,
    settings: Settings = None,
) -> None:
    """Step time and efficiency on machines one does not have, by an alpha-beta model of the links."""
    from unisono.bench.case import measure
    from unisono.bench.forecast import forecast as predict
    from unisono.bench.forecast import parse_links
    from unisono.recipe.load import load_recipe

    links = parse_links(link)
    for name in (inside, between):
        if name not in links:
            raise UserError.unknown("B107", "link", name, links)
    loaded = load_recipe(recipe, settings or []).recipe
    if step_time_ms is None:
        render.note("measuring the step on one device ...")
        step_time_ms = measure(
            _case(recipe, 1, 15, threads, platform, None, None, None, data_path, settings)
        ).step_time_ms
    count = parameters or _count_parameters(loaded)
    render.line(
        f"{count:,} parameters, {count * 4 / 2**20:,.1f} MiB of gradients; {step_time_ms:,.1f} ms a step on one device"
    )
    for name in (inside, between):
        render.line(
            f"link {name}: {links[name].bandwidth_gb_s:g} GB/s, {links[name].latency_us:g} us ({links[name].source})"
        )
    render.line("devices  step ms  communication ms  exposed ms  efficiency  images/s")
    for number in _counts(devices):
        one = predict(
            step_time_ms=step_time_ms,
            gradient_bytes=count * 4,
            images=loaded.per_replica_batch_size,
            devices=number,
            inside=links[inside],
            between=links[between],
            devices_a_node=devices_a_node,
        )
        render.line(
            f"{number:>7}  {one.step_time_ms:>7,.1f}  {one.communication_ms:>16,.2f}  {one.exposed_ms:>10,.2f}"
            f"  {one.efficiency:>10.1%}  {one.images_per_second:>8,.0f}"
        )


def _count_parameters(recipe: Any) -> int:
    from unisono.models import build_model

    classes = recipe.data.num_classes or {"cifar100": 100, "image_folder": 1000}.get(recipe.data.name, 10)
    channels = 1 if recipe.data.name == "fashion_mnist" else 3
    model = build_model(recipe.model, num_classes=classes, channels=channels, image_size=recipe.data.image_size, seed=0)
    return sum(parameter.numel() for parameter in model.parameters())


def _sweep(cases: list[Case], repeats: int, label: Any, output: Path | None) -> None:
    from unisono.bench.case import Series, machine, measure

    series: list[Series] = []
    for case in cases:
        one = Series(case)
        try:
            for repeat in range(repeats):
                render.note(f"{label(case)}, run {repeat + 1} of {repeats}")
                one.runs.append(measure(case))
        except UserError as error:
            render.line(f"{label(case)}: {error.why}")
            break
        series.append(one)
        render.line(
            f"{label(case)}: {one.images_per_second:,.1f} images/s, {one.runs[0].step_time_ms:,.1f} ms a step, spread {one.spread:.1%}"
        )
    render.line(_machine_line(machine()))
    _write(output, {"series": [one.to_plain() for one in series], "machine": machine()})
    if not series:
        raise typer.Exit(ExitCode.CRASHED)


def _case(
    recipe: str,
    devices: int,
    steps: int,
    threads: int,
    platform: str,
    batch_size: int | None,
    precision: str | None,
    reduction: str | None,
    data_path: Path | None,
    settings: list[str] | None,
) -> Case:
    from unisono.bench.case import Case

    return Case(
        recipe=recipe,
        devices=devices,
        replicas=devices,
        steps=steps,
        threads=threads,
        platform=platform,
        precision=precision,
        per_replica_batch_size=batch_size,
        data_path=str(data_path) if data_path else None,
        reduction=reduction,
        settings=tuple(settings or ()),
    )


def _replicas(recipe: str) -> int:
    from unisono.recipe.load import load_recipe

    return load_recipe(recipe).recipe.replicas


def _counts(text: str, least: int = 1) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and int(part) >= least for part in parts):
        raise UserError(
            "B109", f"cannot read {text!r}", f"it is a list of whole numbers from {least}", "write for example 1,2,4"
        )
    return [int(part) for part in parts]


def _machine_line(facts: dict[str, Any]) -> str:
    versions = f"torch {facts['torch']}, Python {facts['python']}"
    return f"on {facts['cores']} cores of {facts['processor']}, {versions}, load before {facts['load_before']:.1f}"


def _write(output: Path | None, document: dict[str, Any]) -> None:
    if output is None:
        return
    import json

    try:
        output.write_text(json.dumps(document, indent=2), encoding="utf-8")
    except OSError as error:
        raise UserError(
            "B110", f"cannot write {output}", error.strerror or str(error), "choose another file"
        ) from error
    render.note(f"result written to {output}")
