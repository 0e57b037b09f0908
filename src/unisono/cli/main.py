"""The `unisono` command. Each subcommand is a file beside this one; those files import what they need only when called."""

from __future__ import annotations

import sys
import traceback
from types import ModuleType
from typing import Annotated

import typer

from unisono import __version__
from unisono.cli import (
    bench,
    compare,
    data,
    doctor,
    evaluate,
    explain,
    migrate,
    plan,
    recipes,
    render,
    simulate,
    train,
    verify,
)
from unisono.errors import ExitCode, UserError

app = typer.Typer(
    name="unisono",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train an image classifier on every card there is, and get the same model on any number of them.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        render.line(f"unisono {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback behind an error.")] = False,
) -> None:
    """Options that stand before the subcommand."""


# One line a subcommand, in the order of --help. Each module has `register(app)` and imports lightly.
SUBCOMMANDS: tuple[ModuleType, ...] = (
    train,
    evaluate,
    plan,
    recipes,
    data,
    verify,
    compare,
    bench,
    migrate,
    simulate,
    doctor,
    explain,
)

for _module in SUBCOMMANDS:
    _module.register(app)


def main() -> None:
    """Run the command; a `UserError` becomes four lines and its exit code, never a traceback."""
    debug = "--debug" in sys.argv[1:]
    try:
        app()
    except UserError as error:
        if debug:
            traceback.print_exc()
        render.user_error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        render.note("stopped by Ctrl-C")
        sys.exit(ExitCode.STOPPED)
    except BrokenPipeError:
        # The reader of our output went away (`unisono ... | head`); that is not a failure of ours.
        sys.stderr.close()
        sys.exit(ExitCode.OK)


if __name__ == "__main__":
    main()
