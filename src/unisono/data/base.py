"""What the trainer sees of data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """Some images, ready for the model."""

    images: Tensor
    labels: Tensor
    indices: np.ndarray


@dataclass(frozen=True, slots=True)
class Source:
    """A whole set in memory."""

    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class DataSets:
    """Training and validation images of one data set."""

    train: Source
    val: Source
    num_classes: int
    channels: int
    class_names: tuple[str, ...]


class Batches(Protocol):
    """Gives this rank's share, step by step."""

    def train_steps(self, first_step: int, last_step: int) -> Iterator[list[Batch]]:
        """One list a step: this rank's replicas in order."""
        ...

    def eval_batches(self) -> Iterator[Batch]:
        """This rank's block of the validation batches."""
        ...

    def bad_image_count(self) -> int:
        """Unreadable images replaced so far."""
        ...

    def close(self) -> None:
        """End loader processes."""
        ...
