"""`unisono doctor`: check a machine before an hour is lost. Starts without torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unisono.cli import render
from unisono.errors import ExitCode, UserError

if TYPE_CHECKING:
    from unisono.doctor.finding import Finding

_MARKS = {"ok": "ok     ", "warn": "warn   ", "fail": "FAIL   ", "skip": "skip   ", "unknown": "unknown"}


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("doctor", rich_help_panel="Diagnose")(doctor)


def doctor(
    devices: Annotated[
        int | None, typer.Option("--devices", "-n", min=1, help="Try every collective on so many devices.")
    ] = None,
    platform: Annotated[str, typer.Option("--platform", help="Where: npu, cuda, cpu or auto.")] = "auto",
    training: Annotated[
        bool, typer.Option("--training", help="Train twenty steps three times and compare digests.")
    ] = False,
    nodes: Annotated[str, typer.Option("--nodes", help="Other machines to reach: HOST[:PORT],HOST,...")] = "",
    nnodes: Annotated[
        int, typer.Option("--nnodes", min=1, help="Machines that try collectives together; give the command on each.")
    ] = 1,
    node_rank: Annotated[int, typer.Option("--node-rank", min=0, help="Number of this machine.")] = 0,
    rdzv_endpoint: Annotated[str, typer.Option("--rdzv-endpoint", help="HOST:PORT of machine 0.")] = "",
    data_path: Annotated[Path | None, typer.Option("--data-path", help="Look at this data set too.")] = None,
    run_dir: Annotated[Path, typer.Option("--run-dir", help="Where runs go; with --bundle a run to pack.")] = Path(
        "runs"
    ),
    only: Annotated[str, typer.Option("--only", help="Themes, separated by commas.")] = "",
    without: Annotated[str, typer.Option("--skip", help="Themes to leave out.")] = "",
    show_all: Annotated[bool, typer.Option("--all", help="Show skipped checks one by one.")] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Print the commands that would mend what was found; run none.")
    ] = False,
    bundle: Annotated[
        Path | None,
        typer.Option("--bundle", help="Pack what a bug report needs into this zip, names and secrets taken out."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The findings as JSON.")] = False,
) -> None:
    """Check versions, environment, libraries, devices, network, host; try collectives and training on request.

    Exit code 1 when something fails.
    """
    from unisono.doctor.bundle import write_bundle
    from unisono.doctor.runner import Examination, examine, failed
    from unisono.doctor.selftest import Machines

    _check_machines(devices, nnodes, node_rank, rdzv_endpoint)
    findings = examine(
        Examination(
            devices=devices,
            platform=platform,
            machines=Machines(nnodes, node_rank, rdzv_endpoint),
            nodes=_split(nodes),
            data_path=data_path,
            run_dir=run_dir,
            training=training,
            only=_split(only),
            skip=_split(without),
        )
    )
    if json:
        render.as_json({theme: [finding.to_plain() for finding in rows] for theme, rows in findings.items()})
    elif fix:
        _show_commands(findings)
    else:
        _show(findings, show_all)
    if bundle is not None:
        try:
            names = write_bundle(bundle, findings, run_dir, _split(nodes))
        except OSError as error:
            raise UserError(
                "H196", f"cannot write {bundle}", error.strerror or str(error), "choose another file"
            ) from error
        render.note(f"{bundle}: {', '.join(names)}; read it before you send it")
    raise typer.Exit(ExitCode.ANSWER_IS_NO if failed(findings) else ExitCode.OK)


def _check_machines(devices: int | None, nnodes: int, node_rank: int, endpoint: str) -> None:
    """Refuse what torchrun would only complain of after a minute."""
    if nnodes == 1:
        if devices == 1:
            raise UserError("H197", "--devices 1", "one device has nobody to exchange with", "use --devices 2 or more")
        return
    host, _, port = endpoint.rpartition(":")
    if not host or not port.isdecimal() or node_rank >= nnodes or devices is None:
        raise UserError(
            "H197",
            f"--nnodes {nnodes} --node-rank {node_rank} --rdzv-endpoint {endpoint or 'missing'}",
            "machines need a number each from 0, the devices of one, and a place to meet",
            f"unisono doctor --devices 8 --nnodes {nnodes} --node-rank 0 --rdzv-endpoint HOST:29500 on machine 0, and so on",
        )


def _show(findings: dict[str, list[Finding]], show_all: bool) -> None:
    counts: dict[str, int] = {}
    for theme, rows in findings.items():
        render.line(theme)
        for finding in rows:
            counts[finding.status] = counts.get(finding.status, 0) + 1
            if finding.status == "skip" and not show_all:
                continue
            evidence = f" ({finding.evidence})" if finding.evidence else ""
            render.line(f"  {_MARKS[finding.status]} {finding.code} {finding.title}{evidence}")
            if finding.remedy:
                render.line(f"          -> {finding.remedy}")
            if finding.command:
                render.line(f"             {finding.command}")
        skipped = [finding.title for finding in rows if finding.status == "skip"]
        if skipped and not show_all:
            render.line(f"  skipped: {', '.join(skipped)}")
    render.line(", ".join(f"{count} {status}" for status, count in counts.items()))


def _show_commands(findings: dict[str, list[Finding]]) -> None:
    commands = [(finding.command, finding.title) for rows in findings.values() for finding in rows if finding.command]
    for command, why in commands:
        render.line(f"{command}    # {why}")
    if not commands:
        render.line("# nothing to mend by a command")


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
