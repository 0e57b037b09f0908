"""Reading a whole data set before a run does: what is unreadable, stray, empty, or labelled otherwise than training."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from unisono.data.cifar import cifar_folder, open_cifar
from unisono.data.decode import to_rgb
from unisono.data.folder import has_folders, is_stray, open_folders, val_folder
from unisono.data.idx import open_fashion_mnist
from unisono.errors import UserError

_ORDINARY_MODES = ("RGB", "L")


@dataclass(slots=True)
class Report:
    """What a check found."""

    kind: str
    train_images: int = 0
    val_images: int = 0
    classes: int = 0
    unreadable: list[str] = field(default_factory=list)
    """Path and reason of every image that does not decode."""
    notes: list[str] = field(default_factory=list)
    """Stray folders, empty classes, classes that validation lacks."""
    modes: dict[str, int] = field(default_factory=dict)
    """Images by Pillow's mode, other than RGB and grey; they are decoded by the documented rule."""
    turned: int = 0
    """Images that their EXIF data turns."""
    errors: list[str] = field(default_factory=list)
    """What makes the set unusable."""

    @property
    def ok(self) -> bool:
        """True when training can use the set as it is."""
        return not self.errors and not self.unreadable

    def to_plain(self) -> dict[str, Any]:
        """For JSON."""
        return {"ok": self.ok, **asdict(self)}


def check_data(path: Path, processes: int | None = None) -> Report:
    """Read every image of a data set of any known form.

    Raises:
        UserError: D101 nothing there that looks like a data set.
    """
    if not path.is_dir():
        raise UserError("D101", f"no folder {path}", "there is nothing to check", "check the path")
    if has_folders(path):
        return _check_folders(path, processes)
    for name in ("cifar10", "cifar100"):
        folder = cifar_folder(name, path)
        if folder is not None:
            return _check_arrays(name, lambda name=name, folder=folder: open_cifar(name, folder))
    return _check_arrays("fashion_mnist", lambda: open_fashion_mnist(path))


def _check_arrays(kind: str, open_it: Any) -> Report:
    report = Report(kind)
    try:
        sets = open_it()
    except UserError as error:
        if error.code == "D101":
            raise
        report.errors.append(f"{error.what}: {error.why}")
        return report
    report.train_images, report.val_images, report.classes = len(sets.train), len(sets.val), sets.num_classes
    return report


def _check_folders(path: Path, processes: int | None) -> Report:
    report = Report("image_folder")
    try:
        sets = open_folders(path)
    except UserError as error:
        report.errors.append(f"{error.what}: {error.why}")
        return report
    report.train_images, report.val_images, report.classes = len(sets.train), len(sets.val), sets.num_classes
    report.notes = list(sets.notes) + _stray_below(path)
    splits = [path / "train", val_folder(path)]
    files = [str(file) for split in splits if split is not None for file in _images(split)]
    with ProcessPoolExecutor(processes or os.cpu_count()) as pool:
        for name, mode, turned, problem in pool.map(_look, files, chunksize=64):
            if problem is not None:
                report.unreadable.append(f"{name}: {problem}")
            elif mode not in _ORDINARY_MODES:
                report.modes[mode] = report.modes.get(mode, 0) + 1
            report.turned += turned
    return report


def _images(split: Path) -> list[Path]:
    from unisono.data.folder import SUFFIXES

    found = []
    for here, below, names in os.walk(split, followlinks=True):
        below[:] = sorted(name for name in below if not is_stray(name))
        found += [
            Path(here) / name for name in sorted(names) if not is_stray(name) and Path(name).suffix.lower() in SUFFIXES
        ]
    return found


def _stray_below(path: Path) -> list[str]:
    """Hidden folders and files inside classes, which other loaders would count as classes or images."""
    stray = [
        os.path.join(os.path.relpath(here, path), name)
        for here, below, names in os.walk(path)
        for name in [*below, *names]
        if is_stray(name) and os.path.relpath(here, path).count(os.sep) >= 1
    ]
    return [f"{len(stray)} stray names are passed over: {', '.join(sorted(stray)[:3])}"] if stray else []


def _look(file: str) -> tuple[str, str, bool, str | None]:
    """Decode one image whole: (path, mode, turned by EXIF, problem)."""
    try:
        with Image.open(file) as image:
            mode, turned = image.mode, image.getexif().get(0x0112, 1) != 1
            to_rgb(image)
    except Exception as error:  # Pillow's decoders raise many kinds for damaged files
        return file, "", False, f"{type(error).__name__}: {error}"
    return file, mode, turned, None
