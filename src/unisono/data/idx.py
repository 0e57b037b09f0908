"""Fashion-MNIST in IDX files, plain or gzipped, wherever the usual tools put them."""

from __future__ import annotations

import gzip
import logging
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unisono.data.base import ArraySource, DataSets
from unisono.errors import UserError

log = logging.getLogger(__name__)

CLASS_NAMES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
SAMPLE = Path(__file__).resolve().parent / "sample"
DEBIAN = Path("/usr/share/datasets/fashion-mnist")
_STEMS = {"train": "train", "val": "t10k"}


def open_fashion_mnist(data_path: Path | None) -> DataSets:
    """Fashion-MNIST of a folder; without one, Debian's package, else the sample that ships here.

    Raises:
        UserError: D101 no such files there, D102 a damaged file, D103 images and labels that do not fit.
    """
    folder = _find(data_path)
    sets = {split: _read_split(folder, stem) for split, stem in _STEMS.items()}
    is_sample = folder.resolve() == SAMPLE
    notes: tuple[str, ...] = ()
    if is_sample:
        notes = (
            f"this is the shipped sample of Fashion-MNIST ({len(sets['train']):,} + {len(sets['val']):,} images); "
            "accuracies of the whole set need --data-path",
        )
    return DataSets(sets["train"], sets["val"], CLASS_NAMES, 1, is_sample, notes)


def _find(data_path: Path | None) -> Path:
    if data_path is None:
        return DEBIAN if _holds(DEBIAN) else SAMPLE
    places = [data_path / below for below in ("", "FashionMNIST/raw", "raw", "FashionMNIST", "fashion-mnist")]
    for place in places:
        if _holds(place):
            return place
    raise UserError(
        "D101",
        f"no Fashion-MNIST in {data_path}",
        f"looked for train-images-idx3-ubyte (or .gz) in {', '.join(str(p) for p in places)}",
        "give the folder of the IDX files, add --download, or leave --data-path out for the shipped sample",
    )


def _holds(folder: Path) -> bool:
    return any((folder / f"train-images-idx3-ubyte{suffix}").is_file() for suffix in ("", ".gz"))


def _read_split(folder: Path, stem: str) -> ArraySource:
    images_path, labels_path = _file(folder, f"{stem}-images-idx3-ubyte"), _file(folder, f"{stem}-labels-idx1-ubyte")
    images, labels = read_idx(images_path, 3), read_idx(labels_path, 1)
    if len(images) != len(labels):
        raise UserError(
            "D103",
            f"{len(images)} images in {images_path.name} and {len(labels)} labels in {labels_path.name}",
            "each image has one label",
            "fetch both files again",
        )
    check_labels(labels.astype(np.int64), len(CLASS_NAMES), labels_path)
    return ArraySource(images[:, None], labels.astype(np.int64))


def _file(folder: Path, name: str) -> Path:
    for suffix in ("", ".gz"):
        if (folder / f"{name}{suffix}").is_file():
            return folder / f"{name}{suffix}"
    raise UserError(
        "D101",
        f"{name} (or .gz) is missing in {folder}",
        "the set has four files and this one is not there",
        "fetch the set again, or add --download",
    )


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """The array of an IDX file of bytes. Format: two zero bytes, type 8, dimensions, then sizes as big-endian int32.

    Raises:
        UserError: D102 damaged, cut, or of another kind.
    """
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(
            "D102", f"cannot read {path}", f"{type(error).__name__}: {error}", "fetch the file again"
        ) from None
    header = 4 + 4 * dimensions
    if len(raw) < header or raw[:4] != bytes((0, 0, 8, dimensions)):
        raise UserError(
            "D102",
            f"{path} is no IDX file of {dimensions} dimension(s) of bytes",
            f"it begins with {raw[:4].hex() or 'nothing'}",
            "fetch the file again",
        )
    shape = tuple(int(size) for size in np.frombuffer(raw, ">i4", dimensions, 4))
    expected = header + int(np.prod(shape))
    if len(raw) != expected:
        raise UserError(
            "D102",
            f"{path} holds {len(raw):,} bytes",
            f"its header promises {expected:,}",
            "the file is cut or damaged; fetch it again",
        )
    return np.frombuffer(raw, np.uint8, offset=header).reshape(shape)


def check_labels(labels: NDArray[np.int64], classes: int, where: Path) -> None:
    """Refuse labels that stand for no class.

    Raises:
        UserError: D104.
    """
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(wrong):
        raise UserError(
            "D104",
            f"label {labels[wrong[0]]} of image {wrong[0]} in {where}",
            f"{classes} classes have labels 0 to {classes - 1}",
            "the file is damaged or of another set",
        )
