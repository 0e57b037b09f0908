"""`unisono explain`: why a run died. Starts without torch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from unisono.cli import render
from unisono.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("explain", rich_help_panel="Diagnose")(explain)


def explain(
    what: Annotated[
        str, typer.Argument(help="An error code, a log file, a folder of logs, or - for standard input.")
    ] = "-",
    lang: Annotated[str | None, typer.Option("--lang", help="en or zh. [default: the locale's]")] = None,
    json: Annotated[bool, typer.Option("--json", help="The answer as JSON.")] = False,
) -> None:
    """Name the rank that failed first, the cause, the evidence and the remedy."""
    from unisono.doctor.explain import explain_code, explain_path, explain_text
    from unisono.doctor.explain_text import default_language, explanation_lines

    language = lang or default_language()
    if language not in ("en", "zh"):
        raise UserError.unknown("H204", "language", language, ("en", "zh"))
    if what == "-":
        if sys.stdin.isatty():
            raise UserError(
                "H205",
                "nothing to explain",
                "no code, file or folder was given and nothing is piped in",
                "unisono explain EI0006, or unisono explain LOGDIR",
            )
        sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]  # a text stream of the process
        found = explain_text(sys.stdin)
    elif Path(what).exists() or "/" in what or "." in what:
        found = explain_path(Path(what))
    else:
        found = explain_code(what)
    if json:
        render.as_json(found.to_plain())
    else:
        for text in explanation_lines(found, language):
            render.line(text)


def explain_run(run_dir: Path) -> list[str]:
    """The lines of the failure screen: what is known of how a run died."""
    from unisono.doctor.explain import explain_folder
    from unisono.doctor.explain_text import default_language, explanation_lines

    try:
        return explanation_lines(explain_folder(run_dir), default_language())
    except UserError:
        return []
