"""Labels in sources: `#: M102 M201` at the end of a line names the findings that belong there, and no others."""

from __future__ import annotations

from collections import Counter

from unisono.migrate.findings import Finding


def labels(text: str) -> Counter[tuple[int, str]]:
    """(line, code) of every label, with how often it stands there."""
    found: Counter[tuple[int, str]] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        if "#:" in line:
            found.update((number, code) for code in line.rsplit("#:", 1)[1].split())
    return found


def places(findings: tuple[Finding, ...]) -> Counter[tuple[int, str]]:
    """(line, code) of every finding."""
    return Counter((finding.line, finding.code) for finding in findings)


def differences(text: str, findings: tuple[Finding, ...]) -> list[str]:
    """What is found and not labelled, and what is labelled and not found, as lines to read."""
    wanted, got = labels(text), places(findings)
    lines = text.splitlines()
    missing = [f"not found: {code} on line {n}: {lines[n - 1].strip()}" for n, code in (wanted - got).elements()]
    surplus = [f"not labelled: {code} on line {n}: {lines[n - 1].strip()}" for n, code in (got - wanted).elements()]
    return missing + surplus
