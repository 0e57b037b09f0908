"""Bad data is refused by name, with the way out."""

from __future__ import annotations

import gzip
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from unisono.data.cifar import open_cifar
from unisono.data.folder import open_folders
from unisono.data.idx import SAMPLE, open_fashion_mnist, read_idx
from unisono.data.open import open_data_sets
from unisono.errors import UserError
from unisono.recipe.load import load_recipe


def idx(array: np.ndarray) -> bytes:
    return bytes((0, 0, 8, array.ndim)) + b"".join(size.to_bytes(4, "big") for size in array.shape) + array.tobytes()


@pytest.fixture
def fashion(tmp_path: Path) -> Path:
    for stem, count in (("train", 6), ("t10k", 4)):
        (tmp_path / f"{stem}-images-idx3-ubyte").write_bytes(idx(np.zeros((count, 28, 28), np.uint8)))
        (tmp_path / f"{stem}-labels-idx1-ubyte").write_bytes(idx(np.arange(count, dtype=np.uint8)))
    return tmp_path


def code_of(call: Any, *arguments: Any) -> tuple[str, str]:
    with pytest.raises(UserError) as caught:
        call(*arguments)
    return caught.value.code, f"{caught.value.what} {caught.value.why} {caught.value.fix}"


def test_the_shipped_sample_is_whole_and_says_that_it_is_a_sample() -> None:
    sets = open_fashion_mnist(SAMPLE)
    assert (len(sets.train), len(sets.val), sets.num_classes, sets.channels, sets.is_sample) == (
        8000,
        2000,
        10,
        1,
        True,
    )
    assert np.bincount(sets.train.labels).tolist() == [800] * 10
    assert np.bincount(sets.val.labels).tolist() == [200] * 10
    assert "sample" in sets.notes[0]


@pytest.mark.parametrize("below", ["", "raw", "FashionMNIST/raw"])
def test_fashion_mnist_is_found_plain_and_zipped_where_tools_put_it(
    fashion: Path, below: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("root")
    (root / below).mkdir(parents=True, exist_ok=True)
    for file in fashion.iterdir():
        (root / below / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    assert len(open_fashion_mnist(root).train) == 6


@pytest.mark.parametrize("keep", [0, 3, 15, 16, 100, -1])
def test_a_cut_idx_file_is_refused_by_name(fashion: Path, keep: int) -> None:
    path = fashion / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:keep])
    code, text = code_of(open_fashion_mnist, fashion)
    assert code == "D102"
    assert path.name in text


def test_a_cut_gzip_file_is_refused_by_name(fashion: Path) -> None:
    path = fashion / "t10k-labels-idx1-ubyte"
    (fashion / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes())[:20])
    path.unlink()
    code, text = code_of(open_fashion_mnist, fashion)
    assert (code, path.name in text) == ("D102", True)


def test_a_label_out_of_range_is_refused_with_its_place(fashion: Path) -> None:
    path = fashion / "t10k-labels-idx1-ubyte"
    path.write_bytes(idx(np.array([0, 1, 17, 3], np.uint8)))
    code, text = code_of(open_fashion_mnist, fashion)
    assert (code, "label 17 of image 2" in text) == ("D104", True)


def test_images_and_labels_of_different_number_are_refused(fashion: Path) -> None:
    (fashion / "train-labels-idx1-ubyte").write_bytes(idx(np.zeros(5, np.uint8)))
    assert code_of(open_fashion_mnist, fashion)[0] == "D103"


def test_a_missing_folder_and_a_missing_file_are_told_apart(fashion: Path, tmp_path: Path) -> None:
    (fashion / "t10k-labels-idx1-ubyte").unlink()
    assert "t10k-labels" in code_of(open_fashion_mnist, fashion)[1]
    assert code_of(open_fashion_mnist, tmp_path / "nowhere")[0] == "D101"


def test_an_idx_file_of_other_dimensions_is_refused(fashion: Path) -> None:
    assert code_of(read_idx, fashion / "train-images-idx3-ubyte", 1)[0] == "D102"


@pytest.fixture
def cifar(tmp_path: Path) -> Path:
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        table = {b"data": np.zeros((4, 3072), np.uint8), b"labels": [0, 1, 2, 9]}
        (tmp_path / name).write_bytes(pickle.dumps(table, protocol=2))
    (tmp_path / "batches.meta").write_bytes(pickle.dumps({"label_names": [f"c{i}" for i in range(10)]}, protocol=2))
    return tmp_path


def test_cifars_pickles_are_read(cifar: Path) -> None:
    sets = open_cifar("cifar10", cifar)
    assert (len(sets.train), len(sets.val), sets.class_names[9]) == (20, 4, "c9")


@pytest.mark.parametrize("keep", [0, 10, 100, 5000])
def test_a_cut_pickle_is_refused_by_name(cifar: Path, keep: int) -> None:
    path = cifar / "data_batch_3"
    path.write_bytes(path.read_bytes()[:keep])
    code, text = code_of(open_cifar, "cifar10", cifar)
    assert (code, "data_batch_3" in text) == ("D102", True)


def test_a_pickle_that_asks_for_code_is_refused_and_nothing_runs(cifar: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(cifar / "ran"),)

    (cifar / "data_batch_1").write_bytes(pickle.dumps({b"data": Evil()}))
    assert code_of(open_cifar, "cifar10", cifar)[0] == "D102"
    assert not (cifar / "ran").exists()


def test_a_cifar_label_out_of_range_is_refused(cifar: Path) -> None:
    (cifar / "test_batch").write_bytes(
        pickle.dumps({b"data": np.zeros((1, 3072), np.uint8), b"labels": [10]}, protocol=2)
    )
    assert code_of(open_cifar, "cifar10", cifar)[0] == "D104"


def image(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8)).save(path)


def test_hidden_folders_are_no_class_and_hidden_files_no_image(tmp_path: Path) -> None:
    for split in ("train", "val"):
        for name in ("a", "b"):
            image(tmp_path / split / name / "1.png")
        image(tmp_path / split / ".ipynb_checkpoints" / "1-checkpoint.png")
        image(tmp_path / split / "__MACOSX" / "1.png")
        image(tmp_path / split / "a" / ".ipynb_checkpoints" / "1.png")
        image(tmp_path / split / "a" / "._1.png")
        (tmp_path / split / "a" / "Thumbs.db").write_bytes(b"x")
    sets = open_folders(tmp_path)
    assert sets.class_names == ("a", "b")
    assert len(sets.train) == 2
    assert any(".ipynb_checkpoints" in note for note in sets.notes)


def test_validation_labels_follow_trainings_classes_where_a_folder_is_missing(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        image(tmp_path / "train" / name / "1.png")
    for name in ("b", "c"):
        image(tmp_path / "val" / name / "1.png")
    sets = open_folders(tmp_path)
    assert sets.val.labels.tolist() == [1, 2]
    assert any("lacks 1 of 3" in note for note in sets.notes)
    image(tmp_path / "val" / "d" / "1.png")
    assert code_of(open_folders, tmp_path)[0] == "D106"


def test_folders_of_another_layout_are_refused(tmp_path: Path) -> None:
    assert code_of(open_folders, tmp_path / "nowhere")[0] == "D101"
    assert code_of(open_folders, tmp_path)[0] == "D105"
    (tmp_path / "train" / "a").mkdir(parents=True)
    (tmp_path / "val" / "a").mkdir(parents=True)
    assert code_of(open_folders, tmp_path)[0] == "D107"


def test_a_recipe_whose_normalisation_has_other_channels_is_refused(fashion: Path) -> None:
    recipe = load_recipe("mlp_fashion_mnist", ["augment.mean=[0.1, 0.2, 0.3]", "augment.std=[1.0, 1.0, 1.0]"]).recipe
    assert code_of(open_data_sets, recipe, fashion)[0] == "D108"
