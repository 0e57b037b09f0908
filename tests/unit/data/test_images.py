"""Images of every mode decode by one rule; damaged ones fail or are replaced as the recipe says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from unisono.data import open_batches, open_data_sets
from unisono.data.check import check_data
from unisono.data.decode import load_train, random_box, to_rgb
from unisono.data.mixing import mix_batch
from unisono.errors import UserError
from unisono.recipe.load import load_recipe
from unisono.recipe.schema import AugmentRecipe, Recipe


def saved(tmp_path: Path, image: Image.Image, name: str, **options: Any) -> Image.Image:
    image.save(tmp_path / name, **options)
    return to_rgb(Image.open(tmp_path / name))


RED = Image.new("RGB", (4, 4), (200, 0, 0))


def test_palette_grey_alpha_cmyk_and_one_bit_images_become_rgb(tmp_path: Path) -> None:
    assert saved(tmp_path, RED.convert("P"), "p.png").getpixel((0, 0))[0] > 150  # type: ignore[index]  # RGB pixels are tuples
    assert saved(tmp_path, Image.new("L", (4, 4), 77), "l.png").getpixel((0, 0)) == (77, 77, 77)
    assert saved(tmp_path, Image.new("LA", (4, 4), (77, 3)), "la.png").getpixel((0, 0)) == (77, 77, 77)
    assert saved(tmp_path, Image.new("RGBA", (4, 4), (9, 8, 7, 0)), "rgba.png").getpixel((0, 0)) == (9, 8, 7)
    assert saved(tmp_path, Image.new("1", (4, 4), 1), "1.png").getpixel((0, 0)) == (255, 255, 255)
    assert saved(tmp_path, RED.convert("CMYK"), "c.jpg", quality=100).mode == "RGB"


def test_sixteen_bit_grey_keeps_its_upper_eight_bits(tmp_path: Path) -> None:
    deep = Image.fromarray(np.array([[0, 256, 32768, 65535]], dtype=np.uint16))
    assert np.asarray(saved(tmp_path, deep, "deep.png"))[0, :, 0].tolist() == [0, 1, 128, 255]


def test_exif_turns_an_image_before_it_is_cropped(tmp_path: Path) -> None:
    image = Image.new("RGB", (40, 20), (0, 0, 0))
    image.paste((255, 255, 255), (0, 0, 20, 20))
    exif = image.getexif()
    exif[0x0112] = 6
    turned = saved(tmp_path, image, "t.jpg", exif=exif, quality=95)
    assert turned.size == (20, 40)
    assert turned.getpixel((10, 5))[0] > 200  # type: ignore[index]  # RGB pixels are tuples
    assert turned.getpixel((10, 35))[0] < 50  # type: ignore[index]  # RGB pixels are tuples


def test_a_random_box_lies_inside_and_keeps_area_and_ratio() -> None:
    recipe = AugmentRecipe(random_resized_crop=True)
    generator = np.random.default_rng(0)
    for _ in range(500):
        width, height = int(generator.integers(10, 900)), int(generator.integers(10, 900))
        left, upper, wide, tall = random_box((width, height), recipe, generator.random(40))
        assert left >= 0
        assert upper >= 0
        assert left + wide <= width
        assert upper + tall <= height
        assert wide > 0
        assert tall > 0


def folders(root: Path, per_class: int = 4) -> Path:
    generator = np.random.default_rng(0)
    for split in ("train", "val"):
        for name in ("a", "b"):
            (root / split / name).mkdir(parents=True)
            for number in range(per_class):
                Image.fromarray(generator.integers(0, 256, (20, 24, 3), dtype=np.uint8)).save(
                    root / split / name / f"{number}.jpg"
                )
    return root


def folder_recipe(*more: str) -> Recipe:
    base = [
        "replicas=2",
        "per_replica_batch_size=2",
        "data.image_size=16",
        "data.workers=0",
        "evaluate.per_device_batch_size=3",
    ]
    return load_recipe("resnet50_imagenet", [*base, *more]).recipe


def batches_of(recipe: Recipe, root: Path) -> Any:
    sets = open_data_sets(recipe, root)
    return open_batches(
        recipe,
        sets,
        replicas=range(2),
        rank=0,
        world_size=1,
        steps_per_epoch=2,
        device=torch.device("cpu"),
        pinned_memory=False,
        channels_last=False,
        worker_start_method="fork",
    )


def test_a_step_can_be_begun_anywhere_without_decoding_what_was_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = folders(tmp_path)
    recipe = folder_recipe()
    whole = list(batches_of(recipe, root).train_steps(0, 4))
    decoded: list[int] = []
    monkeypatch.setattr(
        "unisono.data.maker.load_train",
        lambda *a, index, **k: decoded.append(index) or load_train(*a, index=index, **k),
    )
    late = list(batches_of(recipe, root).train_steps(3, 4))
    assert len(decoded) == 4
    for a, b in zip(late[0], whole[3], strict=True):
        assert torch.equal(a.images, b.images)
        assert torch.equal(a.labels, b.labels)


def test_a_damaged_image_ends_the_run_with_its_path_class_and_rank(tmp_path: Path) -> None:
    root = folders(tmp_path)
    bad = root / "train" / "b" / "2.jpg"
    bad.write_bytes(bad.read_bytes()[:200])
    with pytest.raises(UserError) as caught:
        list(batches_of(folder_recipe(), root).train_steps(0, 2))
    assert caught.value.code == "D110"
    assert str(bad) in caught.value.what
    assert "class b, rank 0" in caught.value.what


def test_a_damaged_image_may_be_replaced_by_one_of_its_class_and_is_counted(tmp_path: Path) -> None:
    root = folders(tmp_path)
    (root / "train" / "b" / "2.jpg").write_bytes(b"not a jpeg")
    batches = batches_of(folder_recipe("data.on_bad_image=skip", "data.bad_image_limit=0.5"), root)
    labels = [label for step in batches.train_steps(0, 2) for batch in step for label in batch.labels.tolist()]
    assert sorted(labels) == [0] * 4 + [1] * 4
    assert batches.bad_image_count() == 1


def test_too_many_damaged_images_end_the_run_all_the_same(tmp_path: Path) -> None:
    root = folders(tmp_path)
    for number in range(3):
        (root / "train" / "b" / f"{number}.jpg").write_bytes(b"not a jpeg")
    with pytest.raises(UserError) as caught:
        list(batches_of(folder_recipe("data.on_bad_image=skip"), root).train_steps(0, 2))
    assert caught.value.code == "D111"


def test_the_check_finds_what_training_would_meet(tmp_path: Path) -> None:
    root = folders(tmp_path)
    assert check_data(root, 1).ok
    (root / "train" / "b" / "2.jpg").write_bytes(b"not a jpeg")
    (root / "val" / ".ipynb_checkpoints").mkdir()
    Image.new("P", (4, 4)).save(root / "train" / "a" / "p.png")
    report = check_data(root, 1)
    assert not report.ok
    assert [line.split(":")[0] for line in report.unreadable] == [str(root / "train" / "b" / "2.jpg")]
    assert report.modes == {"P": 1}
    assert any(".ipynb_checkpoints" in note for note in report.notes)


def test_mixing_depends_on_seed_step_and_replica_and_keeps_the_mass_of_labels() -> None:
    recipe = AugmentRecipe(mixup_alpha=1, mixup_probability=0.5, cutmix_alpha=1, cutmix_probability=0.5)
    labels = torch.arange(8) % 4

    def mixed(step: int, replica: int) -> tuple[torch.Tensor, torch.Tensor]:
        images = torch.arange(8.0)[:, None, None, None].expand(8, 3, 6, 6).contiguous()
        return mix_batch(
            images, labels, augment=recipe, label_smoothing=0.1, num_classes=4, seed=1, step=step, replica=replica
        )

    again = [mixed(step, 0) for step in (0, 0, 1)]
    assert torch.equal(again[0][0], again[1][0])
    assert not torch.equal(again[0][1], again[2][1])
    assert not torch.equal(mixed(0, 0)[1], mixed(0, 1)[1])
    for step in range(20):
        images, targets = mixed(step, 3)
        torch.testing.assert_close(targets.sum(1), torch.ones(8))
        assert images.min() >= 0
        assert images.max() <= 7
