"""`unisono simulate`: run any command where NPUs are simulated on this CPU."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from unisono.cli import render
from unisono.errors import ExitCode


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    # What stands after the first word of the command belongs to the command.
    app.command("simulate", rich_help_panel="Move to NPUs", context_settings={"allow_interspersed_args": False})(
        simulate
    )


def simulate(
    command: Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND...", help="What to run.")] = None,
    devices: Annotated[int, typer.Option("--devices", "-n", help="NPUs of the server, 1 to 64.")] = 8,
    chip: Annotated[str, typer.Option("--chip", help="Whose rules: 910A, 910B or 910C.")] = "910B",
    memory: Annotated[
        str | None, typer.Option("--memory", help="Of each NPU, as in 32GiB; beyond it allocations fail.")
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            "--fault", help="rank=R,step=S,kind=K with K of hang, exit, oom, link, slow:FACTOR, ecc. Repeatable."
        ),
    ] = None,
    launch: Annotated[
        str,
        typer.Option(
            "--launch", help="each: a process a device, with the rank variables; once; auto: as the script needs."
        ),
    ] = "auto",
) -> None:
    """Run a command in which `import torch_npu` finds simulated NPUs: they compute what the CPU computes, bit for bit.

    Times are this CPU's and say nothing about an NPU.
    """
    from unisono.simulator import environment
    from unisono.simulator.launch import choose_launch, resolve, run_simulated
    from unisono.simulator.settings import make_settings

    settings = make_settings(devices, chip, memory, fault or [])
    words = resolve(command or [])
    way = choose_launch(launch, words)
    variables = environment(devices, chip=chip, memory=memory, faults=fault or [])
    rules = settings.rules
    render.note(
        f"simulating {devices} NPU{'s' if devices > 1 else ''} ({rules.device_name}, {rules.memory_bytes / 2**30:g} GiB each) "
        f"on this CPU, {'a process for each' if way == 'each' else 'one process'}; times are not an NPU's"
    )
    result = run_simulated(words, devices, way, variables, _write)
    if result.failed_rank is not None:
        render.note(f"rank {result.failed_rank} failed first, with exit code {result.exit_code}; the others were ended")
    if result.exit_code:
        raise typer.Exit(result.exit_code)
    raise typer.Exit(ExitCode.OK)


def _write(text: str, is_error: bool) -> None:
    (render.note if is_error else render.line)(text)
    sys.stdout.flush()
