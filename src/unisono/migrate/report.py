"""Reports of a migration: JSON for programs, Markdown for people; `report_html` draws the third."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unisono.errors import UserError
from unisono.migrate.findings import FileResult, Finding, FixKind, Options, RuleInfo, Summary

FORMATS = (".json", ".md", ".html")


def rule_table() -> dict[str, RuleInfo]:
    """Every rule, of sources and of configurations, by code."""
    from unisono.migrate.configs import RULES
    from unisono.migrate.rules import all_rules

    return {**all_rules(), **{rule.code: rule for rule in RULES}}


def summarize(results: Sequence[FileResult]) -> Summary:
    """The counts of a run."""
    summary = Summary()
    for result in results:
        summary.add(result)
    return summary


def unified_diff(result: FileResult) -> str:
    """The change of one file as a unified diff; "" when there is none."""
    if not result.changed:
        return ""
    before, after = result.before.splitlines(keepends=True), result.after.splitlines(keepends=True)
    lines = difflib.unified_diff(before, after, f"a/{result.path}", f"b/{result.path}")
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def write_report(path: Path, results: Sequence[FileResult], options: Options, command: str) -> None:
    """Write the report in the form that the file's ending names. Raises UserError G106 for another ending, G104."""
    from unisono.migrate.report_html import as_html
    from unisono.migrate.source import write_atomically

    check_report_path(path)
    text = {".json": as_json, ".md": as_markdown, ".html": as_html}[path.suffix.lower()](results, options, command)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text, "utf-8")
    except OSError as error:
        raise UserError(
            "G104", f"{path} cannot be written", str(error.strerror or error), "choose another place for the report"
        ) from error


def check_report_path(path: Path) -> None:
    """Raises UserError G106 when the ending is none of the three."""
    if path.suffix.lower() not in FORMATS:
        raise UserError(
            "G106",
            f"no report of the kind {path.suffix or path.name!r}",
            "a report is JSON, Markdown or HTML",
            "end the name in .json, .md or .html",
        )


def as_json(results: Sequence[FileResult], options: Options, command: str) -> str:
    """The whole result; the field names are stable."""
    rules = rule_table()
    document: dict[str, Any] = {
        "format": 1,
        "command": command,
        "target": str(options.target),
        "summary": asdict(summarize(results)),
        "files": [
            {
                "path": r.path,
                "lines": r.lines,
                "changed": r.changed,
                "error": r.error,
                "findings": [_finding(f, rules) for f in r.findings],
            }
            for r in results
            if r.findings or r.changed or r.error
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _finding(finding: Finding, rules: dict[str, RuleInfo]) -> dict[str, Any]:
    row = asdict(finding)
    del row["path"]
    row["fix_kind"] = str(finding.fix_kind)
    row["title"] = rules[finding.code].title
    return row


def sections(findings: Sequence[Finding]) -> list[tuple[str, list[Finding]]]:
    """Findings in the order in which a person wants them: to do, to read again, done, remarks."""
    to_do = [f for f in findings if f.left]
    review = [f for f in findings if f.fixed and f.fix_kind is not FixKind.SAFE]
    done = [f for f in findings if f.fixed and f.fix_kind is FixKind.SAFE]
    remarks = [f for f in findings if f.hint and not f.fixed]
    named = [("To do by hand", to_do), ("Rewritten: read again", review), ("Rewritten", done), ("Remarks", remarks)]
    return [(title, found) for title, found in named if found]


def as_markdown(results: Sequence[FileResult], options: Options, command: str) -> str:
    """A report to read or to paste into an issue."""
    summary, rules = summarize(results), rule_table()
    out = [
        f"# Migration to {options.target}",
        "",
        f"`{command}`",
        "",
        f"{summary.files} files, {summary.lines:,} lines: {summary.changed_files} files changed, {summary.fixed} places rewritten, "
        f"{summary.left} to do by hand, {summary.hints} remarks, {summary.unreadable_files} files not readable.",
        "",
        "| code | what | places |",
        "|---|---|---|",
        *(f"| {code} | {rules[code].title} | {count} |" for code, count in sorted(summary.by_code.items())),
    ]
    for result in results:
        if not result.findings:
            continue
        out += ["", f"## {result.path}"]
        for title, found in sections(result.findings):
            out += ["", f"### {title}", ""]
            for finding in found:
                advice = f" **Advice:** {finding.advice}." if finding.advice else ""
                code = finding.excerpt.replace("`", "'")
                out.append(f"- line {finding.line}, {finding.code}: `{code}` - {finding.why}.{advice}")
    return "\n".join(out) + "\n"
