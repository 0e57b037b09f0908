"""A recipe file plus overrides: what wins, what is remembered, and every mistake told by key and file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from unisono.errors import UserError
from unisono.recipe.load import load_recipe, recipe_names

SMALL = """
name = "small"
per_replica_batch_size = 16
train_for = "2 epochs"
[model]
name = "mlp"
[data]
name = "fashion_mnist"
image_size = 28
[optimizer]
name = "sgd"
learning_rate = 0.1
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return str(path)


def refused(name: str, *overrides: str, **values: Any) -> UserError:
    with pytest.raises(UserError) as caught:
        load_recipe(name, overrides, values)
    return caught.value


def test_a_file_gives_a_frozen_recipe(small: str) -> None:
    recipe = load_recipe(small).recipe
    assert (recipe.replicas, recipe.global_batch_size) == (8, 128)
    with pytest.raises(ValueError, match="frozen"):
        recipe.seed = 3


def test_overrides_win_over_the_file_the_last_over_the_first_and_named_options_over_all(small: str) -> None:
    loaded = load_recipe(small, ["seed=1", "seed=2", "optimizer.name=adamw"], {"optimizer.name": "lamb"})
    assert (loaded.recipe.seed, loaded.recipe.optimizer.name) == (2, "lamb")
    assert loaded.overrides == {"seed": 2, "optimizer.name": "lamb"}


def test_the_rate_remembers_the_batch_of_the_file_it_was_chosen_for(small: str) -> None:
    recipe = load_recipe(small, ["per_replica_batch_size=32", "replicas=4"]).recipe
    assert recipe.global_batch_size == 128
    assert recipe.optimizer.learning_rate_global_batch_size == 128
    assert load_recipe(small, ["replicas=16"]).recipe.optimizer.learning_rate_global_batch_size == 128


def test_a_rate_from_the_command_line_is_for_the_batch_as_it_is(small: str) -> None:
    Path(small).write_text(SMALL + "learning_rate_global_batch_size = 256\n", encoding="utf-8")
    assert load_recipe(small).recipe.optimizer.learning_rate_global_batch_size == 256
    recipe = load_recipe(small, ["replicas=2"], {"optimizer.learning_rate": 0.3}).recipe
    assert recipe.optimizer.learning_rate == 0.3
    assert recipe.optimizer.learning_rate_global_batch_size is None


@pytest.mark.parametrize("text", ['precision = "O2"', '[precision]\ncompute = "fp16"\nloss_scale = 1024'])
def test_apexs_names_stand_for_a_precision(text: str, small: str) -> None:
    Path(small).write_text(text + "\n" + SMALL if text.startswith("p") else SMALL + text, encoding="utf-8")
    precision = load_recipe(small).recipe.precision
    assert (precision.compute, precision.loss_scale) == ("fp16", 1024.0)
    assert load_recipe(small, ["precision.loss_scale=512"]).recipe.precision.loss_scale == 512


@pytest.mark.parametrize(
    ("override", "code", "words"),
    [
        ("seed", "R103", "--set 'seed'"),
        ("=3", "R103", "section.key=value"),
        ("optimizer.learning_rat=0.1", "R104", "learning_rate"),
        ("optimiser.learning_rate=0.1", "R104", "optimizer"),
        ("seed.deep=1", "R104", "seed.deep"),
        ("optimizer.learning_rate=0", "R105", "optimizer.learning_rate = 0"),
        ("optimizer.learning_rate=nan", "R105", "optimizer.learning_rate"),
        ("optimizer.nesterov=true", "R105", "momentum"),
        ("replicas=two", "R105", "replicas"),
        ("train_for=9", "R105", "9 epochs"),
        ("model=mlp", "R105", "model"),
        ("precision=O9", "R105", "O9"),
        ("schedule.name=step", "R105", "milestones"),
        ("schedule.milestones=['3 weeks']", "R105", "schedule.milestones.0 = '3 weeks'"),
        ("precision.loss_scale=-1", "R105", "precision.loss_scale = -1 "),
        ("augment.mean=[0.1, x]", "R105", "augment.mean"),
        ("schedule.period='0 steps'", "R105", "period"),
        ("augment.mixup_probability=0.5", "R105", "mixup_alpha"),
        ("name=a/b", "R105", "name"),
    ],
)
def test_a_mistake_is_told_by_its_key(override: str, code: str, words: str, small: str) -> None:
    error = refused(small, override)
    assert error.code == code
    assert words in f"{error.what} {error.why} {error.fix}"


def test_a_mistake_names_the_place_it_is_in(small: str) -> None:
    assert "on the command line" in refused(small, "seed=-1").what
    Path(small).write_text("seed = -1\n" + SMALL, encoding="utf-8")
    assert "small.toml" in refused(small).what


def test_mistakes_of_mixing_are_told(small: str) -> None:
    both = ("augment.mixup_alpha=1.0", "augment.cutmix_alpha=1.0")
    error = refused(small, *both, "augment.mixup_probability=0.6", "augment.cutmix_probability=0.6")
    assert "at most 1" in error.why


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"name = ", "R102"), (b"\xff\xfe\x00", "R102"), (b"", "R105"), (b'name = "x"\nnope = 1\n', "R104")],
)
def test_a_damaged_file_is_told_by_name(content: bytes, code: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    error = refused(str(path))
    assert error.code == code
    assert "bad.toml" in error.what


def test_a_recipe_that_is_not_there_is_told_with_the_nearest_name(tmp_path: Path) -> None:
    assert refused(str(tmp_path / "none.toml")).code == "R101"
    error = refused("resnet20_cifar100")
    assert error.code == "R101"
    assert "resnet20_cifar10" in error.fix


def test_shipped_recipes_load_and_are_named_after_their_files() -> None:
    assert len(recipe_names()) >= 9
    for name in recipe_names():
        assert load_recipe(name).recipe.name == name
