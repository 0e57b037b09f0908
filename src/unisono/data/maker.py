"""What loader processes do: tasks become uint8 images. Nothing here touches a device."""

from __future__ import annotations

import signal
import struct
import zlib
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset, get_worker_info

from unisono.data.base import ArraySource, Indices, Source
from unisono.data.decode import Photograph, augment_train, load_eval, load_train, resize_shorter_and_crop
from unisono.data.resident import move_on_host
from unisono.errors import UserError
from unisono.recipe.schema import Recipe

EVALUATION = -1
"""The epoch of tasks for validation images."""

# What Pillow's decoders raise for damaged files of one format or another.
UNREADABLE = (
    OSError,
    EOFError,
    SyntaxError,
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    OverflowError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker makes in one go: the images of one replica's batch. Carries its epoch, so that no worker is stale."""

    epoch: int
    """`EVALUATION` for validation images."""
    indices: Indices


@dataclass(frozen=True, slots=True)
class Made:
    """What came of a task; an error travels as data, since exceptions lose their fields on the way between processes."""

    images: Tensor | None
    """uint8 [n, C, H, W] in NHWC memory."""
    replaced: tuple[tuple[int, str], ...] = ()
    """Index of each unreadable image that another stands in for, and why it could not be read."""
    error: tuple[str, str, str, str] | None = None

    def pin_memory(self) -> Made:
        """A copy in page-locked memory; torch's loader calls this where the platform asks for it."""
        return self if self.images is None else Made(self.images.pin_memory(), self.replaced, self.error)


def begin_worker(_worker: int) -> None:
    """Let the rank alone decide when its loaders end.

    Schedulers and Ctrl-C signal whole process groups; a loader that died of it would take from the rank the batches it
    needs to reach a step's end and save. Loaders end when the rank closes them or is gone.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


class Maker(Dataset[Made]):
    """Lives in the workers: decodes, crops and stacks."""

    def __init__(self, recipe: Recipe, source: Source, class_names: tuple[str, ...], rank: int) -> None:
        self._recipe = recipe
        self._source = source
        self._class_names = class_names
        self._rank = rank

    def __getitem__(self, task: Task) -> Made:
        try:
            if self.takes_whole_batches:
                return Made(self._whole_batch(task))
            size = self._recipe.data.image_size
            channels = self._source.images.shape[1] if isinstance(self._source, ArraySource) else 3
            images = np.empty((len(task.indices), size, size, channels), np.uint8)
            replaced: list[tuple[int, str]] = []
            for place, index in enumerate(task.indices):
                images[place] = self._one(int(index), task.epoch, replaced)[..., :channels]
            return Made(torch.from_numpy(images).permute(0, 3, 1, 2), tuple(replaced))
        except UserError as error:
            return Made(None, (), (error.code, error.what, error.why, error.fix))

    @property
    def takes_whole_batches(self) -> bool:
        """Arrays of the right size are cropped and flipped in whole batches here, as the device does it for resident sets."""
        augment = self._recipe.augment
        whole = isinstance(self._source, ArraySource) and self._source.images.shape[-1] == self._recipe.data.image_size
        return whole and augment.auto_augment is None and not augment.random_resized_crop

    def _whole_batch(self, task: Task) -> Tensor:
        assert isinstance(self._source, ArraySource)
        images = self._source.images
        if task.epoch != EVALUATION:
            return move_on_host(images, task.indices, self._recipe, task.epoch, channels_last=True)
        gathered = np.ascontiguousarray(images[task.indices].transpose(0, 2, 3, 1))
        return torch.from_numpy(gathered).permute(0, 3, 1, 2)

    def _one(self, index: int, epoch: int, replaced: list[tuple[int, str]]) -> NDArray[np.uint8]:
        """One image, [size, size, 3]; the next readable one of its class where it is damaged and the recipe allows that."""
        try:
            return self._read(index, epoch, draw_as=index)
        except UNREADABLE as error:
            if self._recipe.data.on_bad_image == "fail":
                raise self._bad_image(index, error) from None
            replaced.append((index, f"{type(error).__name__}: {error}"))
        same_class = np.flatnonzero(self._source.labels == self._source.labels[index])
        place = int(np.searchsorted(same_class, index))
        for candidate in np.roll(same_class, -place)[1:]:
            try:
                return self._read(int(candidate), epoch, draw_as=index)
            except UNREADABLE:
                continue
        raise self._bad_image(index, OSError("no image of this class can be read"))

    def _read(self, index: int, epoch: int, draw_as: int) -> NDArray[np.uint8]:
        recipe, source = self._recipe, self._source
        size = recipe.data.image_size
        if isinstance(source, ArraySource):
            planes = np.broadcast_to(source.images[index], (3, *source.images.shape[2:]))
            image = Photograph(Image.fromarray(np.ascontiguousarray(planes.transpose(1, 2, 0))))
            if epoch == EVALUATION:
                return resize_shorter_and_crop(image, recipe.augment.eval_resize, size)
            return augment_train(image, recipe.augment, size, seed=recipe.seed, epoch=epoch, index=draw_as)
        if epoch == EVALUATION:
            return load_eval(source.path(index), recipe.augment, size)
        return load_train(source.path(index), recipe.augment, size, seed=recipe.seed, epoch=epoch, index=draw_as)

    def _bad_image(self, index: int, error: Exception) -> UserError:
        where = str(self._source.path(index)) if not isinstance(self._source, ArraySource) else f"image {index}"
        worker = get_worker_info()
        name = self._class_names[int(self._source.labels[index])]
        return UserError(
            "D110",
            f"cannot read {where} (class {name}, rank {self._rank}, worker {worker.id if worker else 'none'})",
            f"{type(error).__name__}: {error}",
            "mend or remove the file (`unisono data check DIR` lists all), or --set data.on_bad_image=skip",
        )
