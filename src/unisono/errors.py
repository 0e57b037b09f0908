"""The one error a user meets, and the exit codes of the command.

A `UserError` says what happened, why, and the way out, under a stable code. Families of codes:
R recipe, J job and launch, P platform, D data, M model, C checkpoint, T training run, V verify and compare,
B bench, H doctor and explain, G migrate, S simulator. docs/errors.md lists every code.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """How the command ends; scripts may rely on these."""

    OK = 0
    """Done."""
    ANSWER_IS_NO = 1
    """A check failed, findings are left, or a figure got worse."""
    REFUSED = 2
    """The request cannot be carried out: usage, recipe, environment or data."""
    CRASHED = 3
    """The run itself failed."""
    STOPPED = 4
    """Stopped by a signal, after saving."""


class UserError(Exception):
    """A failure that the user can act on. Printed as four short lines, without a traceback.

    Args:
        code: stable code, one capital letter and three digits, for example "R104".
        what: what happened, naming the file, value or rank.
        why: the rule that was broken, with the numbers.
        fix: the way out, as a thing to type or to change.
        exit_code: how the command ends because of it.
    """

    def __init__(self, code: str, what: str, why: str, fix: str, *, exit_code: ExitCode = ExitCode.REFUSED) -> None:
        super().__init__(f"{code}: {what} ({why}). {fix}")
        self.code = code
        self.what = what
        self.why = why
        self.fix = fix
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions cross process borders by pickle, which would call __init__ with one argument.
        return (_rebuild, (self.code, self.what, self.why, self.fix, int(self.exit_code)))

    @classmethod
    def unknown(cls, code: str, kind: str, name: str, known: Iterable[str]) -> UserError:
        """The error for a name that is not in a table: lists the nearest names, or all when there are few."""
        names = sorted(known)
        near = nearest_names(name, names)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names[:20])}"
        return cls(
            code, f"unknown {kind} {name!r}", f"there are {len(names)} to choose from, and this is none of them", hint
        )


def nearest_names(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """At most `most` names of `known` that look like `name`, best first; spelling case is ignored."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=most, cutoff=0.6)
    return [by_folded[folded] for folded in close]


def _rebuild(code: str, what: str, why: str, fix: str, exit_code: int) -> UserError:
    return UserError(code, what, why, fix, exit_code=ExitCode(exit_code))
