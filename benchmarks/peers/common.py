"""What all peers' loops share: the model, the images, and a watch that counts steps after the first ones."""

from __future__ import annotations

import argparse
import json
import pickle
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import Dataset
from torchvision import transforms
from torchvision.datasets import ImageFolder

from unisono.models import build_model
from unisono.recipe.schema import ModelRecipe

CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Task:
    """What to train on what."""

    model: str
    size: int
    data: Path | None
    """CIFAR-10's Python batches, or an image folder with train/; None makes CIFAR's images from nothing."""
    batch: int

    @property
    def is_cifar(self) -> bool:
        """Images from arrays rather than files."""
        return self.size == 32

    @property
    def mean_and_std(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Of images in [0, 1]."""
        return (CIFAR_MEAN, CIFAR_STD) if self.is_cifar else (IMAGENET_MEAN, IMAGENET_STD)

    def images(self, transform: Any = None) -> Dataset[Any]:
        """The training set, images as Pillow's, as torchvision's own sets give them."""
        if self.is_cifar:
            return CifarImages(self.data, transform)
        assert self.data is not None
        return ImageFolder(str(self.data / "train"), transform)

    def transform(self) -> transforms.Compose:
        """The usual transforms: pad, crop and flip for CIFAR; random resized crop and flip for photographs."""
        first: list[Any] = (
            [transforms.RandomCrop(32, padding=4)] if self.is_cifar else [transforms.RandomResizedCrop(self.size)]
        )
        last = [transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize(*self.mean_and_std)]
        return transforms.Compose(first + last)

    def build(self, classes: int) -> nn.Module:
        """The same network as ours, as torch makes it."""
        return build_model(
            ModelRecipe(name=self.model), num_classes=classes, channels=3, image_size=self.size, seed=0
        ).train()


class CifarImages(Dataset[Any]):
    """CIFAR-10's training images, one at a time, as torchvision's data set reads them."""

    def __init__(self, folder: Path | None, transform: Any) -> None:
        self.transform = transform
        self.classes = [str(number) for number in range(10)]
        if folder is None:
            generator = np.random.default_rng(0)
            self._images = generator.integers(0, 256, (10_000, 32, 32, 3), np.uint8)
            self._labels = generator.integers(0, 10, 10_000).tolist()
            return
        rows, self._labels = [], []
        for path in sorted(folder.rglob("data_batch_*")):
            with path.open("rb") as file:
                batch = pickle.load(file, encoding="latin1")
            rows.append(batch["data"])
            self._labels += batch["labels"]
        self._images = np.vstack(rows).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image: Any = Image.fromarray(self._images[index])
        return (self.transform(image) if self.transform is not None else image), self._labels[index]


class Watch:
    """Times `steps` steps after `first` ones."""

    def __init__(self, first: int, steps: int, batch: int) -> None:
        self._first, self._steps, self._batch, self._done = first, steps, batch, 0
        self._created = self._started = time.perf_counter()
        self.first_steps_s = self.seconds = 0.0

    def step_done(self) -> bool:
        """One step is over; True when enough are."""
        self._done += 1
        now = time.perf_counter()
        if self._done == self._first:
            self.first_steps_s, self._started = now - self._created, now
        self.seconds = now - self._started
        return self._done >= self._first + self._steps

    def tell(self, **versions: str) -> None:
        """Print the answer as one line of JSON."""
        speed = self._steps * self._batch / self.seconds
        answer = {"images_per_second": speed, "first_steps_s": self.first_steps_s, "torch": torch.__version__}
        print(json.dumps(answer | versions), flush=True)


def arguments(doc: str | None) -> tuple[Task, Watch, argparse.Namespace]:
    """The options that every loop takes."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet50_cifar")
    parser.add_argument("--size", type=int, default=32, help="32 stands for CIFAR, others for photographs")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--first", type=int, default=5, help="steps before the watch starts")
    parser.add_argument("--steps", type=int, default=10)
    given = parser.parse_args()
    task = Task(given.model, given.size, given.data, given.batch)
    return task, Watch(given.first, given.steps, given.batch), given
