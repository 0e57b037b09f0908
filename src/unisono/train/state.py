"""Where a run stands, in plain types: what a checkpoint holds besides tensors."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class TrainState:
    """Progress and results so far. Nothing in it depends on the machine or the clock."""

    step: int = 0
    """Optimizer updates made."""
    skipped_steps: int = 0
    """Batches whose update was left out (overflow, a loss that is not finite)."""
    not_finite_in_a_row: int = 0
    best_top1_accuracy: float = -1.0
    best_step: int = 0
    loss_history: list[list[float]] = field(default_factory=list)
    """[step, mean training loss over replicas] of every recorded step."""
    evaluations: list[dict[str, float]] = field(default_factory=list)

    @property
    def position(self) -> int:
        """Global batches taken from the data, which is where the data goes on."""
        return self.step + self.skipped_steps

    def to_plain(self) -> dict[str, Any]:
        """For a checkpoint."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> TrainState:
        """From a checkpoint."""
        return cls(**plain)
