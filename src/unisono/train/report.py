"""What the trainer tells a person while it runs; how it looks is the command's affair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from unisono.train.evaluate import Evaluation


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """One recorded step."""

    step: int
    total_steps: int
    epoch: float
    loss: float
    learning_rate: float
    images_per_second: float | None
    """Global; None while the first steps warm up."""
    top1_accuracy: float | None
    """Of the last evaluation."""
    eta_s: float | None


class Reporter(Protocol):
    """Receives events of a run on rank 0."""

    def planned(self, lines: Sequence[str]) -> None:
        """The plan, before the first step."""
        ...

    def progressed(self, progress: Progress) -> None:
        """A recorded step."""
        ...

    def evaluated(self, evaluation: Evaluation, step: int, best: bool) -> None:
        """The validation set was counted."""
        ...

    def said(self, text: str) -> None:
        """Anything else worth a line: a resume, a skipped update, a bad image."""
        ...

    def finished(self, summary: dict[str, Any]) -> None:
        """The end, with the run's summary."""
        ...


class Silent:
    """The reporter of every rank but the first."""

    def planned(self, lines: Sequence[str]) -> None:
        """Says nothing."""

    def progressed(self, progress: Progress) -> None:
        """Says nothing."""

    def evaluated(self, evaluation: Evaluation, step: int, best: bool) -> None:
        """Says nothing."""

    def said(self, text: str) -> None:
        """Says nothing."""

    def finished(self, summary: dict[str, Any]) -> None:
        """Says nothing."""
