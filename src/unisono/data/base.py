"""What the trainer sees of data: sets, batches, and the classes that labels stand for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Some images, ready for the model."""

    images: Tensor
    """float32 [B, C, H, W] on the device, normalised."""
    labels: Tensor
    """int64 [B] on the device."""
    indices: Indices
    """Positions in the data set, [B]."""


@dataclass(frozen=True, slots=True)
class ArraySource:
    """A whole set in memory."""

    images: NDArray[np.uint8]
    """[N, C, H, W]"""
    labels: Indices
    """[N]"""

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class FileSource:
    """Images in files. Paths are one array of bytes: lists of objects would be copied into every worker as they are read."""

    root: Path
    paths: NDArray[np.bytes_]
    """Paths below the root, [N]."""
    labels: Indices
    """[N]"""

    def __len__(self) -> int:
        return len(self.labels)

    def path(self, index: int) -> Path:
        """The file of one image."""
        below: bytes = self.paths[index]
        return self.root / os.fsdecode(below)


Source = ArraySource | FileSource


@dataclass(frozen=True, slots=True)
class DataSets:
    """Training and validation images, and the classes their labels stand for."""

    train: Source
    val: Source
    class_names: tuple[str, ...]
    channels: int
    is_sample: bool = False
    """True when this is the small part of the set that ships with the package."""
    notes: tuple[str, ...] = field(default=())
    """Worth a line at the start: folders passed over, classes that the validation set lacks."""

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)


def first_images(source: Source, images: int) -> Source:
    """The first `images` of a source; all of it where it has no more."""
    if isinstance(source, ArraySource):
        return ArraySource(source.images[:images], source.labels[:images])
    return FileSource(source.root, source.paths[:images], source.labels[:images])


class Batches(Protocol):
    """This rank's share of the data, step by step."""

    def train_steps(self, first_step: int, last_step: int) -> Iterator[list[Batch]]:
        """One list a step, the replicas of this rank in order; starting anywhere costs no decoding."""
        ...

    def eval_batches(self) -> Iterator[Batch]:
        """This rank's block of the validation set's fixed batches; over all ranks every image once."""
        ...

    def bad_image_count(self) -> int:
        """Unreadable images replaced so far on this rank."""
        ...

    def close(self) -> None:
        """End the loader processes."""
        ...
