"""`unisono explain`: why a run died. Starts without torch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unisono.cli import render
from unisono.errors import UserError

if TYPE_CHECKING:
    from unisono.doctor.explain_result import Explanation


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
    from unisono.doctor.explain_text import choose_language, explanation_lines

    language = choose_language(lang)
    found = _explain(what)
    if json:
        render.as_json(found.to_plain())
        return
    for text in explanation_lines(found, language):
        render.line(text)


def _explain(what: str) -> Explanation:
    from unisono.doctor.explain import explain_code, explain_path, explain_stream

    if not what.strip() or (what == "-" and sys.stdin.isatty()):
        raise UserError(
            "H205",
            "nothing to explain",
            "no code, file or folder was given and nothing is piped in",
            "unisono explain EI0006, or unisono explain LOGDIR",
        )
    if what == "-":
        return explain_stream(sys.stdin.buffer)
    # A code has no dot, and a path that is meant as one mostly has a dot or a slash.
    if Path(what).exists() or "/" in what or "." in what:
        return explain_path(Path(what))
    return explain_code(what)


def explain_run(run_dir: Path) -> list[str]:
    """The lines of the failure screen: what is known of how a run died."""
    from unisono.doctor.explain import explain_folder
    from unisono.doctor.explain_text import default_language, explanation_lines

    try:
        return explanation_lines(explain_folder(run_dir), default_language())
    except UserError:
        return []
