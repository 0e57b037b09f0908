"""Fallback."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unisono.data.base import Batch, DataSets, Source


def _idx(path: Path) -> np.ndarray:
    raw = gzip.open(path).read()
    n = raw[3]
    shape = np.frombuffer(raw, ">i4", n, 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * n).reshape(shape)


def open_data_sets(recipe: Any, data_path: Path | None) -> DataSets:
    if recipe.data.name == "synthetic":
        g = np.random.default_rng(0)
        c = recipe.data.num_classes or 10
        size = recipe.data.image_size
        protos = g.integers(0, 255, (c, 3, size, size))
        def make(n: int, seed: int) -> Source:
            r = np.random.default_rng(seed)
            labels = r.integers(0, c, n)
            return Source(np.clip(protos[labels] + r.normal(0, 40, (n, 3, size, size)), 0, 255).astype(np.uint8), labels)
        return DataSets(make(recipe.data.synthetic_train_images, 1), make(recipe.data.synthetic_val_images, 2), c, 3, tuple(map(str, range(c))))
    d = Path("/usr/share/datasets/fashion-mnist")
    t = Source(_idx(d / "train-images-idx3-ubyte.gz")[:, None], _idx(d / "train-labels-idx1-ubyte.gz").astype(np.int64))
    v = Source(_idx(d / "t10k-images-idx3-ubyte.gz")[:, None], _idx(d / "t10k-labels-idx1-ubyte.gz").astype(np.int64))
    return DataSets(t, v, 10, 1, tuple(map(str, range(10))))


class _Resident:
    def __init__(self, recipe: Any, sets: DataSets, replicas: range, rank: int, world_size: int, spe: int) -> None:
        self.r, self.sets, self.replicas, self.rank, self.w, self.spe = recipe, sets, replicas, rank, world_size, spe
        m = torch.tensor(recipe.augment.mean)[:, None, None] * 255
        s = torch.tensor(recipe.augment.std)[:, None, None] * 255
        self.x = (torch.from_numpy(sets.train.images.copy()).float() - m) / s
        self.y = torch.from_numpy(sets.train.labels.copy())
        self.vx = (torch.from_numpy(sets.val.images.copy()).float() - m) / s
        self.vy = torch.from_numpy(sets.val.labels.copy())

    def train_steps(self, first: int, last: int) -> Any:
        g, b = self.r.global_batch_size, self.r.per_replica_batch_size
        for step in range(first, last):
            epoch, s = divmod(step, self.spe)
            perm = np.random.Generator(np.random.Philox(key=[self.r.seed, epoch])).permutation(len(self.y))
            out = []
            for rep in self.replicas:
                i = perm[s * g + rep * b : s * g + (rep + 1) * b]
                out.append(Batch(self.x[i], self.y[i], i))
            yield out

    def eval_batches(self) -> Any:
        b = self.r.evaluate.per_device_batch_size
        n = -(-len(self.vy) // b)
        for k in range(n * self.rank // self.w, n * (self.rank + 1) // self.w):
            yield Batch(self.vx[k * b : (k + 1) * b], self.vy[k * b : (k + 1) * b], np.arange(k * b, min(len(self.vy), (k + 1) * b)))

    def bad_image_count(self) -> int:
        return 0

    def close(self) -> None:
        pass


def open_batches(recipe: Any, sets: DataSets, *, replicas: range, rank: int, world_size: int, steps_per_epoch: int, **_: Any) -> Any:
    return _Resident(recipe, sets, replicas, rank, world_size, steps_per_epoch)


def mix_batch(images: Any, labels: Any, **_: Any) -> Any:
    return images, labels
