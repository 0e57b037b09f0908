"""What a migration says: findings, their fix kinds, and the result for a file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum


class Target(StrEnum):
    """What the migrated source runs on."""

    NPU = "npu"
    """torch_npu code: `torch.npu.*`, "hccl", "npu:0"."""
    PORTABLE = "portable"
    """One source for npu, cuda and cpu, through `torch.accelerator` and a device constant."""


class FixKind(StrEnum):
    """How far a fix can be trusted."""

    SAFE = "safe"
    """Does on the new device what the old line did on a GPU."""
    UNSAFE = "unsafe"
    """Written, but the meaning can differ: read the line again."""
    MANUAL = "manual"
    """Not written; the advice says what to write."""


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """One stable finding code: what it is about, and how it is usually fixed."""

    code: str
    title: str
    fix_kind: FixKind


@dataclass(frozen=True, slots=True)
class Finding:
    """One place in one file.

    `line` and `column` count from 1 in the file as it was read. `hint` marks remarks that need no action for
    the program to run (an inert flag, a faster alternative); they do not make `--check` fail.
    """

    code: str
    path: str
    line: int
    column: int
    end_line: int
    excerpt: str
    why: str
    fix_kind: FixKind
    advice: str = ""
    fixed: bool = False
    hint: bool = False

    @property
    def left(self) -> bool:
        """True when somebody still has to act on it."""
        return not self.fixed and not self.hint


@dataclass(frozen=True, slots=True)
class FileResult:
    """What happened to one file. `error` is set when it could not be read or parsed; it is then unchanged."""

    path: str
    before: str
    after: str
    findings: tuple[Finding, ...] = ()
    error: str = ""
    lines: int = 0
    encoding: str = "utf-8"

    @property
    def changed(self) -> bool:
        """True when the new text differs from the old."""
        return self.after != self.before


@dataclass(frozen=True, slots=True)
class Options:
    """How to migrate. `only` and `ignore` hold codes or their first letters and digits, for example "M1"."""

    target: Target = Target.NPU
    safe_only: bool = False
    configs: bool = False
    only: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def wants(self, code: str) -> bool:
        """True when findings of this code are asked for."""
        chosen = not self.only or any(code.startswith(prefix) for prefix in self.only)
        return chosen and not any(code.startswith(prefix) for prefix in self.ignore)


@dataclass(slots=True)
class Summary:
    """Counts over all files of a run."""

    files: int = 0
    lines: int = 0
    changed_files: int = 0
    unreadable_files: int = 0
    fixed: int = 0
    left: int = 0
    hints: int = 0
    by_code: dict[str, int] = field(default_factory=dict)

    def add(self, result: FileResult) -> None:
        """Count one file in."""
        self.files += 1
        self.lines += result.lines
        self.changed_files += result.changed
        self.unreadable_files += bool(result.error)
        for finding in result.findings:
            self.fixed += finding.fixed
            self.left += finding.left
            self.hints += finding.hint and not finding.fixed
            self.by_code[finding.code] = self.by_code.get(finding.code, 0) + 1


def at_path(result: FileResult, path: str) -> FileResult:
    """The same result under another path, in its findings too."""
    return replace(result, path=path, findings=tuple(replace(finding, path=path) for finding in result.findings))
