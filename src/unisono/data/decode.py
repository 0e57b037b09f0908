"""Files to uint8 images, by one documented rule, decoding no more than the crop needs.

The rule: EXIF orientation is applied; palette, grey, 1-bit, CMYK and other modes become RGB by Pillow's conversion;
alpha is dropped; 16-bit grey keeps its upper eight bits; of an animation the first picture counts. Resizing is bilinear
with antialiasing, on uint8.
"""

from __future__ import annotations

import io
import math
import random
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch.nn import functional as F

from unisono.data import jpeg
from unisono.data.order import sample_seed, sample_uniforms
from unisono.recipe.schema import AugmentRecipe

Pixels = NDArray[np.uint8]
"""[height, width, 3]"""

_ORIENTATION = 0x0112
_SIXTEEN_BIT = ("I;16", "I;16B", "I;16L", "I;16N", "I")
# Columns of the draws of a random resized crop, beyond those of the device's augmentation: ten tries of four.
_TRIES = 10
_FIRST_TRY = 8


def load_train(path: Path, recipe: AugmentRecipe, size: int, *, seed: int, epoch: int, index: int) -> Pixels:
    """One training image, cropped, augmented as the library draws for (seed, epoch, index): uint8 [size, size, 3]."""
    return augment_train(Photograph(path.read_bytes()), recipe, size, seed=seed, epoch=epoch, index=index)


def load_eval(path: Path, recipe: AugmentRecipe, size: int) -> Pixels:
    """One validation image: shorter side resized to eval_resize, centre crop: uint8 [size, size, 3]."""
    return resize_shorter_and_crop(Photograph(path.read_bytes()), recipe.eval_resize, size)


class Photograph:
    """An image whose size is known before its pixels are decoded.

    Raises:
        OSError, ValueError and others of Pillow's: not an image, here or when pixels are asked for.
    """

    def __init__(self, data: bytes | Image.Image) -> None:
        self._data = data
        self._frame = jpeg.upright_frame(data) if isinstance(data, bytes) else None
        self._image: Image.Image | None = None
        if self._frame is not None:
            self.size = (self._frame.width, self._frame.height)
        else:
            self._image = Image.open(io.BytesIO(data)) if isinstance(data, bytes) else data
            self.size = image_size(self._image)
        """Width and height as a person sees them."""

    def pixels(self, *, bottom: int, factor: int) -> Pixels:
        """Decoded at least down to line `bottom` of the whole; a JPEG at 1/factor of its size."""
        if self._frame is not None:
            assert isinstance(self._data, bytes)
            found = jpeg.decode(self._data, self._frame, bottom=bottom, factor=factor)
            if found is not None:
                return found
            self._image = Image.open(io.BytesIO(self._data))
        image = self._image
        assert image is not None
        if factor > 1 and image.format == "JPEG" and _turn(image) == 1:
            image.draft("RGB", (self.size[0] // factor, self.size[1] // factor))
        return np.asarray(to_rgb(image))


def augment_train(
    photograph: Photograph, recipe: AugmentRecipe, size: int, *, seed: int, epoch: int, index: int
) -> Pixels:
    """As `load_train`, of an image that is open already."""
    draws = sample_uniforms(seed, epoch, np.array([index]), _FIRST_TRY + 4 * _TRIES)[0]
    if recipe.random_resized_crop:
        pixels = crop_resized(photograph, random_box(photograph.size, recipe, draws[_FIRST_TRY:]), size)
    else:
        pixels = resize_shorter_and_crop(photograph, recipe.eval_resize, size)
    if recipe.auto_augment is not None:
        pixels = _auto_augment(pixels, recipe, sample_seed(seed, epoch, index))
    if recipe.random_resized_crop and draws[2] < recipe.horizontal_flip:
        pixels = pixels[:, ::-1]
    return pixels


def to_rgb(image: Image.Image) -> Image.Image:
    """The documented rule, without resizing."""
    if _turn(image) != 1:
        image = ImageOps.exif_transpose(image)
    if image.mode in _SIXTEEN_BIT:
        image = Image.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    if image.mode == "RGB":
        image.load()
        return image
    return image.convert("RGB")


def image_size(image: Image.Image) -> tuple[int, int]:
    """Width and height as a person sees them, before anything is decoded."""
    width, height = image.size
    return (height, width) if _turn(image) >= 5 else (width, height)


def _turn(image: Image.Image) -> int:
    turn = image.getexif().get(_ORIENTATION, 1)
    return turn if isinstance(turn, int) and 1 <= turn <= 8 else 1


def random_box(size: tuple[int, int], recipe: AugmentRecipe, draws: NDArray[np.float64]) -> tuple[int, int, int, int]:
    """Left, upper, width, height of a random area and aspect ratio inside an image of `size` (width, height).

    Area is uniform, the ratio log-uniform; after ten misfits the largest centre box within the ratios. Source: the
    Inception crop (Szegedy et al. 2015), as torchvision's RandomResizedCrop documents it.
    """
    width, height = size
    low, high = (math.log(ratio) for ratio in recipe.crop_aspect_ratio)
    for attempt in range(_TRIES):
        area_draw, ratio_draw, y_draw, x_draw = draws[4 * attempt : 4 * attempt + 4].tolist()
        area = width * height * (recipe.crop_area[0] + area_draw * (recipe.crop_area[1] - recipe.crop_area[0]))
        ratio = math.exp(low + ratio_draw * (high - low))
        wide, tall = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < wide <= width and 0 < tall <= height:
            return int(x_draw * (width - wide + 1)), int(y_draw * (height - tall + 1)), wide, tall
    ratio = min(max(width / height, recipe.crop_aspect_ratio[0]), recipe.crop_aspect_ratio[1])
    wide, tall = max(1, min(width, round(height * ratio))), max(1, min(height, round(width / ratio)))
    return (width - wide) // 2, (height - tall) // 2, wide, tall


def crop_resized(photograph: Photograph, box: tuple[int, int, int, int], size: int) -> Pixels:
    """The box (left, upper, width, height) of an image resized to size x size.

    A JPEG whose box is at least twice the target is decoded at 1/2, 1/4 or 1/8 of its size: the decoder leaves out the
    high frequencies that the resize would average away.
    """
    left, upper, wide, tall = box
    pixels = photograph.pixels(bottom=upper + tall, factor=_factor(min(wide, tall) / size))
    scale = round(photograph.size[0] / pixels.shape[1])
    if scale == 1:
        return resize(pixels[upper : upper + tall, left : left + wide], size, size)
    # The box has fractions of a pixel now, and Pillow's resize takes those.
    ends = (min(pixels.shape[1], (left + wide) / scale), min(pixels.shape[0], (upper + tall) / scale))
    image = Image.fromarray(pixels)
    return np.asarray(image.resize((size, size), Image.Resampling.BILINEAR, box=(left / scale, upper / scale, *ends)))


def resize_shorter_and_crop(photograph: Photograph, shorter: int | None, size: int) -> Pixels:
    """Resize the shorter side to `shorter` (to `size` when None and the image is of another size), then take the centre."""
    width, height = photograph.size
    if (width, height) == (size, size) and shorter is None:
        return photograph.pixels(bottom=height, factor=1)
    scale = (shorter or size) / min(width, height)
    wide, tall = max(size, round(width * scale)), max(size, round(height * scale))
    pixels = resize(photograph.pixels(bottom=height, factor=_factor(1 / scale)), tall, wide)
    left, upper = (wide - size) // 2, (tall - size) // 2
    return pixels[upper : upper + size, left : left + size]


def resize(pixels: Pixels, height: int, width: int) -> Pixels:
    """Bilinear with antialiasing, on uint8."""
    # A copy, since torch takes neither negative strides nor memory that it may not write to, and is slow on gaps.
    image = torch.from_numpy(np.array(pixels, order="C")).permute(2, 0, 1)[None]
    small = F.interpolate(image, (height, width), mode="bilinear", antialias=True)
    return small[0].permute(1, 2, 0).numpy()


def _factor(shrink: float) -> int:
    """The greatest of 1, 2, 4 and 8 that leaves at least the target's pixels."""
    return next(factor for factor in (8, 4, 2, 1) if shrink >= factor or factor == 1)


def _auto_augment(pixels: Pixels, recipe: AugmentRecipe, seed: int) -> Pixels:
    """timm's policies draw from Python's and numpy's global generators: seeded for this image, and put back after."""
    assert recipe.auto_augment is not None
    fill = tuple(round(255 * mean) for mean in recipe.mean)
    change = policy(recipe.auto_augment, min(pixels.shape[:2]), fill if len(fill) == 3 else fill * 3)
    python_state, numpy_state = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        return np.asarray(change(Image.fromarray(pixels)))
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)


@lru_cache(maxsize=8)
def policy(name: str, size: int, fill: tuple[int, ...]) -> Callable[[Image.Image], Image.Image]:
    """timm's transform of that name for images of `size`, filling with the colour `fill`.

    Raises:
        AssertionError, KeyError, ValueError: timm does not know the name.
    """
    from timm.data.auto_augment import augment_and_mix_transform, auto_augment_transform, rand_augment_transform

    hints = {"translate_const": int(size * 0.45), "img_mean": fill}
    makers = {"rand": rand_augment_transform, "augmix": augment_and_mix_transform}
    make = next((make for start, make in makers.items() if name.startswith(start)), auto_augment_transform)
    made: Callable[[Image.Image], Image.Image] = make(name, hints)
    return made
