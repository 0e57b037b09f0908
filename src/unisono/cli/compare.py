"""`unisono compare`: where two runs part."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from unisono.cli import render
from unisono.errors import ExitCode


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("compare", rich_help_panel="Trust")(compare)


def compare(
    first: Annotated[Path, typer.Argument(help="A run folder: runs/RECIPE/TIME.")],
    second: Annotated[Path, typer.Argument(help="Another one.")],
    json: Annotated[bool, typer.Option("--json", help="The answer as JSON.")] = False,
) -> None:
    """Say whether two runs ended in the same bytes, or where they part. Exit code 1 when they differ."""
    from unisono.train.compare import compare_runs

    answer = compare_runs(first, second)
    if json:
        render.as_json(asdict(answer))
    else:
        for text in answer.lines():
            render.line(text)
    raise typer.Exit(ExitCode.OK if answer.equal else ExitCode.ANSWER_IS_NO)
