"""`unisono migrate`: rewrite CUDA sources for NPUs, report what is left, and try the result on a simulated NPU."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unisono.cli import render
from unisono.errors import ExitCode, UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unisono.migrate.findings import FileResult, Options
    from unisono.migrate.tree import SourceFile


def migrate(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH...", help="Python files, or folders to go through.")
    ] = None,
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="npu|portable", help="npu: torch_npu code. portable: one source for npu, cuda and cpu."
        ),
    ] = "npu",
    write: Annotated[bool, typer.Option("--write", help="Change the files in place.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="DIR", help="Write a migrated copy of the tree there.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only report; exit 1 when there is something to migrate.")
    ] = False,
    report: Annotated[
        list[Path] | None,
        typer.Option("--report", metavar="FILE", help="Write a report: .json, .md or .html. May be given again."),
    ] = None,
    configs: Annotated[
        bool, typer.Option("--configs", help="Change shell scripts and configuration files too (npu target).")
    ] = False,
    safe_only: Annotated[
        bool, typer.Option("--safe-only", help="Leave out fixes whose meaning may differ; report them.")
    ] = False,
    only: Annotated[
        str, typer.Option("--only", metavar="CODES", help="Only these codes or families, with commas: M1,M301.")
    ] = "",
    ignore: Annotated[str, typer.Option("--ignore", metavar="CODES", help="Without these codes or families.")] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="List every finding, not only those to do or to read again.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", help="Processes; 0 is one for each core.")] = 0,
    try_command: Annotated[
        str, typer.Option("--try", metavar="COMMAND", help="Run this in the migrated copy on a simulated NPU.")
    ] = "",
    devices: Annotated[int, typer.Option("--devices", metavar="N", help="Simulated NPUs for --try.")] = 1,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules and stop.")] = False,
) -> None:
    """Move CUDA training scripts to NPUs: print a diff, and report what no tool can decide.

    Without --write or --output nothing is changed. The diff goes to standard output, findings to standard error.
    A line that holds "unisono: keep" in a comment is left as it is.
    """
    if rules:
        _list_rules()
        return
    chosen = _chosen_options(to, safe_only, configs, only, ignore)
    _check_request(paths, write, output, check, report, jobs, devices)
    from unisono.migrate.report import write_report
    from unisono.migrate.tree import gather

    roots = list(paths or [])
    files = gather(roots)
    results = _run(files, chosen, jobs or os.cpu_count() or 1)
    if check:
        _print_findings(results, everything, render.line)
    else:
        if not write and output is None and not try_command:
            _print_diffs(results)
        _print_findings(results, everything, render.note)
    _write(files, results, roots, write, output)
    for path in report or []:
        write_report(path, results, chosen, _command_line())
        render.note(f"report: {path}")
    _print_summary(results, write, output, check)
    failed = _try(files, results, roots, try_command, devices) if try_command else False
    if failed or any(r.error for r in results) or (check and _something_to_do(results)):
        raise typer.Exit(int(ExitCode.ANSWER_IS_NO))


def _command_line() -> str:
    return "unisono " + " ".join(sys.argv[1:])


def _list_rules() -> None:
    from unisono.migrate.report import rule_table

    for code, rule in rule_table().items():
        render.line(f"{code}  {rule.fix_kind!s:7} {rule.title}")


def _chosen_options(to: str, safe_only: bool, configs: bool, only: str, ignore: str) -> Options:
    from unisono.migrate.findings import Options, Target

    if to not in tuple(Target):
        raise UserError.unknown("G107", "target", to, [str(target) for target in Target])
    wanted, unwanted = (tuple(code.strip() for code in text.split(",") if code.strip()) for text in (only, ignore))
    if wanted or unwanted:
        from unisono.migrate.report import rule_table

        known = rule_table()
        for prefix in (*wanted, *unwanted):
            if not any(code.startswith(prefix) for code in known):
                raise UserError.unknown("G108", "finding code", prefix, known)
    return Options(Target(to), safe_only=safe_only, configs=configs, only=wanted, ignore=unwanted)


def _check_request(
    paths: Sequence[Path] | None,
    write: bool,
    output: Path | None,
    check: bool,
    report: Sequence[Path] | None,
    jobs: int,
    devices: int,
) -> None:
    from unisono.migrate.report import check_report_path

    if not paths:
        raise UserError(
            "G101",
            "no path is given",
            "migrate reads files and folders",
            "unisono migrate train.py, or unisono migrate .",
        )
    if sum((write, output is not None, check)) > 1:
        raise UserError(
            "G109",
            "--write, --output and --check exclude each other",
            "they say where the result goes",
            "choose one of them",
        )
    if output is not None and output.exists() and not output.is_dir():
        raise UserError(
            "G104",
            f"{output} is not a folder",
            "--output names the folder for the migrated copy",
            "choose another name",
        )
    if jobs < 0 or devices < 1:
        raise UserError(
            "G110",
            f"--jobs {jobs} --devices {devices}",
            "--jobs counts from 0 and --devices from 1",
            "give a larger number",
        )
    for path in report or []:
        check_report_path(path)


def _run(files: list[SourceFile], options: Options, jobs: int) -> list[FileResult]:
    """Migrate with a progress bar on a terminal, and lines for long runs elsewhere."""
    from unisono.migrate.tree import migrate_files

    if len(files) < 8:
        return migrate_files(files, options, jobs)
    if not sys.stderr.isatty():
        return migrate_files(files, options, jobs, _LineProgress(len(files)))
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("migrate", total=len(files))

        def advance(_: FileResult) -> None:
            bar.update(task, advance=1, refresh=True)

        return migrate_files(files, options, jobs, advance)


class _LineProgress:
    """A line each five seconds, for logs."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.lines, self.last = total, 0, 0, time.monotonic()

    def __call__(self, result: FileResult) -> None:
        self.done += 1
        self.lines += result.lines
        if time.monotonic() - self.last >= 5:
            self.last = time.monotonic()
            render.note(f"{self.done} of {self.total} files, {self.lines:,} lines")


def _print_diffs(results: Sequence[FileResult]) -> None:
    from unisono.migrate.report import unified_diff

    for result in results:
        text = unified_diff(result)
        if text:
            render.line(text.rstrip("\n"))


def _print_findings(results: Sequence[FileResult], everything: bool, out: object) -> None:
    from unisono.migrate.findings import FixKind

    show = render.line if out is render.line else render.note
    for result in results:
        for finding in result.findings:
            unsafe = finding.fixed and finding.fix_kind is not FixKind.SAFE
            if not (everything or finding.left or unsafe):
                continue
            state = (
                "rewritten, read again"
                if unsafe
                else "rewritten"
                if finding.fixed
                else "remark"
                if finding.hint
                else str(finding.fix_kind)
            )
            advice = f". Advice: {finding.advice}" if finding.advice else ""
            show(f"{finding.path}:{finding.line}:{finding.column}: {finding.code} [{state}] {finding.why}{advice}")


def _write(
    files: list[SourceFile], results: list[FileResult], roots: list[Path], write: bool, output: Path | None
) -> None:
    from unisono.migrate.tree import write_elsewhere, write_in_place

    if write:
        write_in_place(results)
    elif output is not None:
        write_elsewhere(files, results, output, roots)


def _print_summary(results: Sequence[FileResult], write: bool, output: Path | None, check: bool) -> None:
    from unisono.migrate.report import summarize

    summary = summarize(results)
    verb = "changed" if write or output is not None else "to change"
    place = f" in {output}" if output is not None else ""
    rewritten = "can be rewritten" if check else "rewritten"
    unreadable = f", {summary.unreadable_files} files not readable" if summary.unreadable_files else ""
    render.note(
        f"{summary.files} files, {summary.lines:,} lines: {summary.changed_files} {verb}{place}; {summary.fixed} places {rewritten}, "
        f"{summary.left} to do by hand, {summary.hints} remarks{unreadable}"
    )


def _something_to_do(results: Sequence[FileResult]) -> bool:
    return any(finding.left or finding.fixed for result in results for finding in result.findings)


def _try(files: list[SourceFile], results: list[FileResult], roots: list[Path], command: str, devices: int) -> bool:
    """Run the command on the simulated NPU and print what still touches CUDA. True when it failed or touched CUDA."""
    from unisono.cli.migrate_try import try_on_simulator

    trial = try_on_simulator(files, results, roots, command, devices)
    for touch in trial.touches:
        render.line(f"{touch.place}: {touch.what}")
    if trial.exit_code:
        render.line(f"tried on {devices} simulated NPU(s): the command ended with exit code {trial.exit_code}")
    elif trial.touches:
        render.line(f"tried on {devices} simulated NPU(s): it ran, and touched CUDA in {len(trial.touches)} place(s)")
    else:
        render.line(f"tried on {devices} simulated NPU(s): it ran, and nothing touched CUDA")
    return bool(trial.exit_code or trial.touches)


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("migrate")(migrate)
