"""A recipe and a path become data sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from unisono.data.base import ArraySource, DataSets, FileSource
from unisono.data.cifar import cifar_folder, open_cifar
from unisono.data.decode import policy
from unisono.data.folder import has_folders, open_folders
from unisono.data.idx import open_fashion_mnist
from unisono.data.jpeg import has_fast_decoder
from unisono.data.synthetic import open_synthetic
from unisono.errors import UserError
from unisono.recipe.schema import Recipe

RESIDENT_LIMIT_BYTES = 2 * 2**30
"""`storage = "auto"` keeps sets up to this size on the device."""


def open_data_sets(recipe: Recipe, data_path: Path | None) -> DataSets:
    """Find and check the data set that a recipe names.

    Raises:
        UserError: D1xx for what is missing, damaged or laid out otherwise; D108 for a form the recipe cannot use,
            D114 an unknown policy of augmentation.
    """
    sets = _open(recipe, data_path)
    if len(recipe.augment.mean) not in (1, sets.channels):
        raise UserError(
            "D108",
            f"augment.mean has {len(recipe.augment.mean)} values, the images have {sets.channels} channel(s)",
            "one value a channel, or one for all",
            "set augment.mean and augment.std for this data set",
        )
    if recipe.data.num_classes not in (None, sets.num_classes):
        raise UserError(
            "D108",
            f"data.num_classes = {recipe.data.num_classes}",
            f"the data set has {sets.num_classes} classes",
            "leave data.num_classes out",
        )
    if recipe.augment.auto_augment is not None:
        _refuse_unknown_policy(recipe.augment.auto_augment)
    if isinstance(sets.train, FileSource) and not has_fast_decoder():
        slow = "simplejpeg is not installed: Pillow decodes JPEGs, at about half the speed and with other rounding"
        return replace(sets, notes=(*sets.notes, slow))
    return sets


def _refuse_unknown_policy(name: str) -> None:
    try:
        policy(name, 224, (124, 116, 104))
    except (AssertionError, KeyError, ValueError, IndexError) as error:
        raise UserError(
            "D114",
            f"augment.auto_augment = {name!r}",
            f"timm knows no such policy ({type(error).__name__}: {error})",
            'take one such as "original-mstd0.5", "rand-m9-mstd0.5", "augmix-m3" or "3a"',
        ) from None


def _open(recipe: Recipe, data_path: Path | None) -> DataSets:
    name = recipe.data.name
    if name == "synthetic":
        return open_synthetic(recipe.data)
    if name == "fashion_mnist":
        return open_fashion_mnist(data_path)
    if name == "image_folder":
        return open_folders(data_path)
    if data_path is None or not data_path.is_dir():
        what = "no --data-path" if data_path is None else f"no folder {data_path}"
        raise UserError(
            "D101",
            f"{name}: {what}",
            "the set does not ship with the package",
            "add --data-path DIR (and --download to fetch it there)",
        )
    folder = cifar_folder(name, data_path)
    if folder is not None:
        return open_cifar(name, folder)
    if has_folders(data_path):
        return open_folders(data_path)
    raise UserError(
        "D101",
        f"no {name} in {data_path}",
        "found neither the python pickles nor train/ and val/ folders of images",
        "check the path, or add --download",
    )


def is_resident(recipe: Recipe, source: ArraySource | FileSource) -> bool:
    """Whether images live on the device.

    Raises:
        UserError: D109 the recipe wants files, or augmentations that need an image library, to be resident.
    """
    needs_files = isinstance(source, FileSource)
    needs_library = recipe.augment.auto_augment is not None or recipe.augment.random_resized_crop
    resized = isinstance(source, ArraySource) and source.images.shape[-1] != recipe.data.image_size
    if recipe.data.storage == "resident" and (needs_files or needs_library or resized):
        why = (
            "files are decoded by workers"
            if needs_files
            else "auto_augment, random_resized_crop and resizing work on single images"
        )
        raise UserError("D109", "data.storage = resident with this recipe", why, "use data.storage = streamed or auto")
    if recipe.data.storage == "streamed" or needs_files or needs_library or resized:
        return False
    assert isinstance(source, ArraySource)
    return recipe.data.storage == "resident" or source.images.nbytes <= RESIDENT_LIMIT_BYTES
