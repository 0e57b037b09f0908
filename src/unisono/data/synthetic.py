"""Images made from nothing: a noisy pattern a class, so that a model can learn them; the same on every machine."""

from __future__ import annotations

import numpy as np

from unisono.data.base import ArraySource, DataSets
from unisono.recipe.schema import DataRecipe


def open_synthetic(data: DataRecipe) -> DataSets:
    """A set of the recipe's size, classes (10 when not said) and image size, with three channels."""
    classes = data.num_classes or 10
    patterns = np.random.Generator(np.random.Philox(key=0)).integers(
        40, 216, (classes, 3, data.image_size, data.image_size)
    )
    train = _draw(patterns, data.synthetic_train_images, 1)
    val = _draw(patterns, data.synthetic_val_images, 2)
    return DataSets(train, val, tuple(f"class {index}" for index in range(classes)), 3)


def _draw(patterns: np.ndarray, images: int, key: int) -> ArraySource:
    generator = np.random.Generator(np.random.Philox(key=key))
    labels = generator.integers(0, len(patterns), images)
    noise = generator.integers(-40, 41, (images, *patterns.shape[1:]))
    return ArraySource((patterns[labels] + noise).astype(np.uint8), labels.astype(np.int64))
