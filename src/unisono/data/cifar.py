"""CIFAR-10 and CIFAR-100 from their python pickles, read without running anything in them."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from unisono.data.base import ArraySource, DataSets
from unisono.data.idx import check_labels
from unisono.errors import UserError

_FOLDER = {"cifar10": "cifar-10-batches-py", "cifar100": "cifar-100-python"}
_FILES = {
    "cifar10": ([f"data_batch_{i}" for i in range(1, 6)], ["test_batch"], "batches.meta", b"labels", "label_names"),
    "cifar100": (["train"], ["test"], "meta", b"fine_labels", "fine_label_names"),
}
# numpy arrays inside the pickles are rebuilt by these; nothing else may be called.
_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ALLOWED:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no CIFAR file needs")


def cifar_folder(name: str, data_path: Path) -> Path | None:
    """Where the pickles are: the folder itself or the archive's folder below it; None when neither."""
    first = _FILES[name][0][0]
    for place in (data_path, data_path / _FOLDER[name], data_path / name):
        if (place / first).is_file():
            return place
    return None


def open_cifar(name: str, folder: Path) -> DataSets:
    """The whole set from its pickles.

    Raises:
        UserError: D101 a file is missing, D102 damaged, D103 images and labels that do not fit, D104 a wrong label.
    """
    train, test, meta_file, label_key, names_key = _FILES[name]
    meta = read_plain_pickle(folder / meta_file)
    names = meta.get(names_key) or meta.get(names_key.encode()) or []
    class_names = tuple(n.decode() if isinstance(n, bytes) else str(n) for n in names)
    if len(class_names) != int(name.removeprefix("cifar")):
        raise UserError(
            "D103",
            f"{folder / meta_file} names {len(class_names)} classes",
            f"{name} has {name.removeprefix('cifar')}",
            "fetch the set again",
        )
    sources = [_read_files(folder, files, label_key, len(class_names)) for files in (train, test)]
    return DataSets(sources[0], sources[1], class_names, 3)


def _read_files(folder: Path, files: list[str], label_key: bytes, classes: int) -> ArraySource:
    images, labels = [], []
    for file in files:
        table = read_plain_pickle(folder / file)
        data, own = table.get(b"data", table.get("data")), table.get(label_key, table.get(label_key.decode()))
        if (
            not isinstance(data, np.ndarray)
            or own is None
            or data.ndim != 2
            or data.shape[1] != 3072
            or data.dtype != np.uint8
        ):
            raise UserError(
                "D103",
                f"{folder / file} holds no images of 3 x 32 x 32 bytes with labels",
                "the python version of CIFAR does",
                "fetch the set again",
            )
        if len(data) != len(own):
            raise UserError(
                "D103",
                f"{len(data)} images and {len(own)} labels in {folder / file}",
                "each image has one label",
                "fetch the set again",
            )
        array = np.asarray(own, dtype=np.int64)
        check_labels(array, classes, folder / file)
        images.append(data.reshape(-1, 3, 32, 32))
        labels.append(array)
    return ArraySource(np.concatenate(images), np.concatenate(labels))


def read_plain_pickle(path: Path) -> dict[Any, Any]:
    """A pickled dict of plain values and arrays.

    Raises:
        UserError: D101 missing, D102 cut, damaged, or asking for code to be run.
    """
    if not path.is_file():
        raise UserError("D101", f"{path} is missing", "the set is not whole", "fetch it again, or add --download")
    try:
        table = _PlainUnpickler(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    except Exception as error:  # a damaged pickle raises nearly anything
        raise UserError(
            "D102",
            f"{path} is cut or damaged",
            f"{type(error).__name__}: {error}",
            "fetch the set again, or add --download",
        ) from None
    if not isinstance(table, dict):
        raise UserError(
            "D102", f"{path} holds a {type(table).__name__}", "a CIFAR file holds a dict", "fetch the set again"
        )
    return table
