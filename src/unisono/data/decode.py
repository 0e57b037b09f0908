"""Files to uint8 images, by one documented rule, decoding no more than the crop needs.

The rule: EXIF orientation is applied; palette, grey, 1-bit, CMYK and other modes become RGB by Pillow's conversion;
alpha is dropped; 16-bit grey keeps its upper eight bits. Resizing is bilinear with antialiasing, on uint8.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from unisono.data.order import sample_seed, sample_uniforms
from unisono.recipe.schema import AugmentRecipe

_ORIENTATION = 0x0112
_SIXTEEN_BIT = ("I;16", "I;16B", "I;16L", "I")
# Columns of the draws of a random resized crop, beyond those of the device's augmentation: ten tries of four.
_TRIES = 10


def to_rgb(image: Image.Image) -> Image.Image:
    """The documented rule, without resizing."""
    image = ImageOps.exif_transpose(image)
    if image.mode in _SIXTEEN_BIT:
        deep = np.asarray(image).astype(np.int64)
        image = Image.fromarray((deep >> 8 if deep.max(initial=0) > 255 else deep).clip(0, 255).astype(np.uint8))
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    return image.convert("RGB")


def load_train(path: Path, recipe: AugmentRecipe, size: int, *, seed: int, epoch: int, index: int) -> NDArray[np.uint8]:
    """One training image, cropped, augmented as the library draws for (seed, epoch, index): uint8 [3, size, size]."""
    with Image.open(path) as opened:
        return augment_train(opened, recipe, size, seed=seed, epoch=epoch, index=index)


def augment_train(
    image: Image.Image, recipe: AugmentRecipe, size: int, *, seed: int, epoch: int, index: int
) -> NDArray[np.uint8]:
    """As `load_train`, of an image that is open already."""
    draws = sample_uniforms(seed, epoch, np.array([index]), 8 + 4 * _TRIES)[0]
    if recipe.random_resized_crop:
        box = random_box(image_size(image), recipe, draws[8:])
        image = crop_resized(image, box, size)
    else:
        image = resize_shorter_and_crop(image, recipe.eval_resize, size)
    if recipe.auto_augment is not None:
        image = _auto_augment(image, recipe, sample_seed(seed, epoch, index))
    if recipe.random_resized_crop and draws[2] < recipe.horizontal_flip:
        image = ImageOps.mirror(image)
    return to_array(image)


def load_eval(path: Path, recipe: AugmentRecipe, size: int) -> NDArray[np.uint8]:
    """One validation image: shorter side resized to eval_resize, centre crop: uint8 [3, size, size]."""
    with Image.open(path) as opened:
        return to_array(resize_shorter_and_crop(opened, recipe.eval_resize, size))


def to_array(image: Image.Image) -> NDArray[np.uint8]:
    """[3, H, W]"""
    return np.asarray(image).transpose(2, 0, 1)


def image_size(image: Image.Image) -> tuple[int, int]:
    """Width and height as a person sees them, before anything is decoded."""
    width, height = image.size
    return (height, width) if image.getexif().get(_ORIENTATION, 1) >= 5 else (width, height)


def random_box(size: tuple[int, int], recipe: AugmentRecipe, draws: NDArray[np.float64]) -> tuple[int, int, int, int]:
    """Left, upper, width, height of a random area and aspect ratio inside an image of `size` (width, height).

    Area is uniform, the ratio log-uniform; after ten misfits the largest centre box within the ratios. Source: the
    Inception crop (Szegedy et al. 2015), as torchvision's RandomResizedCrop documents it.
    """
    width, height = size
    low, high = (math.log(ratio) for ratio in recipe.crop_aspect_ratio)
    for attempt in range(_TRIES):
        area_draw, ratio_draw, y_draw, x_draw = draws[4 * attempt : 4 * attempt + 4]
        area = width * height * (recipe.crop_area[0] + area_draw * (recipe.crop_area[1] - recipe.crop_area[0]))
        ratio = math.exp(low + ratio_draw * (high - low))
        wide, tall = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < wide <= width and 0 < tall <= height:
            return int(x_draw * (width - wide + 1)), int(y_draw * (height - tall + 1)), wide, tall
    ratio = min(max(width / height, recipe.crop_aspect_ratio[0]), recipe.crop_aspect_ratio[1])
    wide, tall = min(width, round(height * ratio)), min(height, round(width / ratio))
    return (width - wide) // 2, (height - tall) // 2, wide, tall


def crop_resized(image: Image.Image, box: tuple[int, int, int, int], size: int) -> Image.Image:
    """The box of an image resized to size x size.

    A JPEG whose box is at least twice the target is decoded at 1/2, 1/4 or 1/8 of its size: libjpeg leaves out the
    high frequencies that the resize would average away.
    """
    left, upper, wide, tall = box
    full = image_size(image)
    if image.format == "JPEG" and image.getexif().get(_ORIENTATION, 1) == 1:
        shrink = min(wide, tall) / size
        if shrink >= 2:
            image.draft("RGB", (math.ceil(full[0] / shrink), math.ceil(full[1] / shrink)))
    image = to_rgb(image)
    sx, sy = image.width / full[0], image.height / full[1]
    scaled = (left * sx, upper * sy, min(image.width, (left + wide) * sx), min(image.height, (upper + tall) * sy))
    return image.resize((size, size), Image.Resampling.BILINEAR, box=scaled)


def resize_shorter_and_crop(image: Image.Image, shorter: int | None, size: int) -> Image.Image:
    """Resize the shorter side to `shorter` (to `size` when None and too small or odd), then take the centre."""
    width, height = image_size(image)
    target = shorter or size
    if (width, height) == (size, size) and shorter is None:
        return to_rgb(image)
    scale = target / min(width, height)
    wide, tall = max(size, round(width * scale)), max(size, round(height * scale))
    if image.format == "JPEG" and scale <= 0.5 and image.getexif().get(_ORIENTATION, 1) == 1:
        image.draft("RGB", (wide, tall))
    resized = to_rgb(image).resize((wide, tall), Image.Resampling.BILINEAR)
    left, upper = (wide - size) // 2, (tall - size) // 2
    return resized.crop((left, upper, left + size, upper + size))


def _auto_augment(image: Image.Image, recipe: AugmentRecipe, seed: int) -> Image.Image:
    """timm's policies draw from Python's and numpy's global generators: seeded for this image, and put back after."""
    from timm.data.auto_augment import auto_augment_transform, rand_augment_transform

    assert recipe.auto_augment is not None
    grey = tuple(round(255 * mean) for mean in recipe.mean)
    hints = {"translate_const": int(min(image.size) * 0.45), "img_mean": grey}
    make = rand_augment_transform if recipe.auto_augment.startswith("rand") else auto_augment_transform
    python_state, numpy_state = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        changed: Image.Image = make(recipe.auto_augment, hints)(image)
        return changed
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
