"""Folders of images, `train/` and `val/` with a folder a class, listed so that no stray file becomes a class."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from unisono.data.base import DataSets, FileSource
from unisono.errors import UserError

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".ppm"})
_VAL_NAMES = ("val", "validation", "test")


def is_stray(name: str) -> bool:
    """Names that operating systems and editors leave behind; they are neither classes nor images."""
    return name.startswith((".", "_")) or name in ("Thumbs.db", "desktop.ini")


def val_folder(root: Path) -> Path | None:
    """The validation split's folder."""
    return next((root / name for name in _VAL_NAMES if (root / name).is_dir()), None)


def has_folders(root: Path) -> bool:
    """True when `root` has the layout of train and val."""
    return (root / "train").is_dir() and val_folder(root) is not None


def open_folders(data_path: Path | None) -> DataSets:
    """List both splits. Validation labels use the training split's classes, whatever folders it lacks.

    Raises:
        UserError: D101 no folder, D105 the layout is another, D106 a class that training does not know, D107 no images.
    """
    if data_path is None:
        raise UserError(
            "D101",
            "this recipe reads images from folders",
            "no --data-path was given",
            "add --data-path DIR, with DIR/train/CLASS/ and DIR/val/CLASS/",
        )
    if not data_path.is_dir():
        raise UserError("D101", f"no folder {data_path}", "--data-path does not lead to a folder", "check the path")
    val = val_folder(data_path)
    if not (data_path / "train").is_dir() or val is None:
        there = ", ".join(sorted(os.listdir(data_path))[:6]) or "nothing"
        raise UserError(
            "D105",
            f"{data_path} has no train/ and val/ folders",
            f"it holds {there}",
            "lay it out as DIR/train/CLASS/image.jpg and DIR/val/CLASS/image.jpg",
        )
    notes: list[str] = []
    class_names = _classes(data_path / "train", notes)
    known = set(class_names)
    val_classes = _classes(val, notes)
    unknown = [name for name in val_classes if name not in known]
    if unknown:
        raise UserError(
            "D106",
            f"{val} has classes that train/ lacks: {', '.join(unknown[:5])}",
            "no output of the model stands for them",
            "add them to train/, or remove them",
        )
    missing = sorted(known - set(val_classes))
    if missing:
        notes.append(
            f"{val.name}/ lacks {len(missing)} of {len(known)} classes ({', '.join(missing[:3])}...): labels follow train/"
        )
    label_of = {name: label for label, name in enumerate(class_names)}
    train_source, val_source = (
        _list(data_path / "train", class_names, label_of, notes),
        _list(val, val_classes, label_of, notes),
    )
    return DataSets(train_source, val_source, class_names, 3, notes=tuple(notes))


def _classes(split: Path, notes: list[str]) -> tuple[str, ...]:
    names = sorted(entry.name for entry in os.scandir(split) if entry.is_dir())
    stray = [name for name in names if is_stray(name)]
    if stray:
        notes.append(f"passed over in {split.name}/: {', '.join(stray[:5])}")
    classes = tuple(name for name in names if not is_stray(name))
    if not classes:
        raise UserError(
            "D107",
            f"no class folders in {split}",
            "each class has a folder of its own",
            "lay it out as CLASS/image.jpg",
        )
    return classes


def _list(split: Path, classes: tuple[str, ...], label_of: dict[str, int], notes: list[str]) -> FileSource:
    paths: list[bytes] = []
    labels: list[int] = []
    empty: list[str] = []
    for name in classes:
        found = sorted(_images_below(split / name, split))
        if not found:
            empty.append(name)
        paths += found
        labels += [label_of[name]] * len(found)
    if not paths:
        raise UserError("D107", f"no images in {split}", f"looked for {', '.join(sorted(SUFFIXES))}", "check the path")
    if empty:
        notes.append(f"{split.name}/ has {len(empty)} empty class folders ({', '.join(empty[:3])}...)")
    return FileSource(split, np.array(paths), np.array(labels, dtype=np.int64))


def _images_below(folder: Path, root: Path) -> list[bytes]:
    found: list[bytes] = []
    for here, below, files in os.walk(folder, followlinks=True):
        below[:] = sorted(name for name in below if not is_stray(name))
        relative = os.path.relpath(here, root)
        found += [
            os.fsencode(f"{relative}/{name}")
            for name in files
            if not is_stray(name) and Path(name).suffix.lower() in SUFFIXES
        ]
    return found
