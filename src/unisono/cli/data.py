"""`unisono data check` and `unisono data download`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unisono.cli import render
from unisono.errors import ExitCode

group = typer.Typer(no_args_is_help=True, help="Check or fetch a data set.")


def register(app: typer.Typer) -> None:
    """Add the subcommands."""
    app.add_typer(group, name="data", rich_help_panel="Train")


@group.command()
def check(
    folder: Annotated[Path, typer.Argument(help="Folder of the data set.")],
    processes: Annotated[int | None, typer.Option("--processes", min=1, help="Readers. [default: the cores]")] = None,
    json: Annotated[bool, typer.Option("--json", help="The findings as JSON.")] = False,
) -> None:
    """Read every image of a set, without a network. Exit code 1 when something is wrong."""
    from unisono.data.check import check_data

    report = check_data(folder, processes)
    if json:
        render.as_json(report.to_plain())
    else:
        render.line(
            f"{report.kind}: {report.train_images:,} training and {report.val_images:,} validation images, {report.classes} classes"
        )
        for text in report.errors:
            render.line(f"error: {text}")
        for text in report.unreadable[:50]:
            render.line(f"unreadable: {text}")
        if len(report.unreadable) > 50:
            render.line(f"... and {len(report.unreadable) - 50} more; --json lists all")
        for text in report.notes:
            render.line(f"note: {text}")
        for mode, count in sorted(report.modes.items()):
            render.line(f"note: {count} images of mode {mode}, which become RGB")
        if report.turned:
            render.line(f"note: {report.turned} images are turned by their EXIF data")
        render.line(
            "fine"
            if report.ok
            else "not fine: mend or remove what is listed, or train with --set data.on_bad_image=skip"
        )
    raise typer.Exit(ExitCode.OK if report.ok else ExitCode.ANSWER_IS_NO)


@group.command()
def download(
    name: Annotated[str, typer.Argument(help="fashion_mnist, cifar10 or cifar100.")],
    folder: Annotated[Path, typer.Argument(help="Where to put it.")],
) -> None:
    """Fetch a public set, whole or not at all, checked against its published checksum."""
    from unisono.data.download import download as fetch

    fetch(name, folder, say=render.line)
    render.line(f"{name} is whole in {folder}")
