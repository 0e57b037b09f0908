"""`unisono recipes` as a person types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unisono.cli.main import app
from unisono.errors import UserError
from unisono.recipe.load import load_recipe, recipe_names


def output_of(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["recipes", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def refusal_of(*arguments: str) -> UserError:
    with pytest.raises(UserError) as caught:
        CliRunner().invoke(app, ["recipes", *arguments], catch_exceptions=False)
    return caught.value


def test_the_list_has_a_line_for_every_recipe_with_its_published_accuracy() -> None:
    lines = output_of().splitlines()
    assert [line.split()[0] for line in lines[1 : len(recipe_names()) + 1]] == recipe_names()
    (line,) = [line for line in lines if line.startswith("resnet50_cifar10 ")]
    assert "128 = 16 x 8" in line
    assert "95.55%" in line


def test_the_list_as_json_has_the_same_recipes() -> None:
    rows = json.loads(output_of("--json"))
    assert [row["name"] for row in rows] == recipe_names()
    assert {row["global_batch_size"] for row in rows} >= {128, 512, 1024, 4096}


def test_a_recipe_shown_can_be_trained_from(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(output_of("resnet50_imagenet", "--set", "replicas=4"), encoding="utf-8")
    shown = load_recipe(str(path)).recipe
    assert shown == load_recipe("resnet50_imagenet", ["replicas=4"]).recipe
    assert shown.optimizer.learning_rate_global_batch_size == 4096


def test_a_recipe_as_json_tells_values_and_origins() -> None:
    shown = json.loads(output_of("mlp_fashion_mnist", "--json", "--set", "seed=3"))
    assert shown["recipe"]["seed"] == 3
    assert shown["origins"]["seed"] == "command line"
    assert shown["about"][0].startswith("unisono train mlp_fashion_mnist")


def test_the_schema_explains_keys_in_words_and_as_json() -> None:
    assert "learning_rate (number; required)" in output_of("--schema")
    assert json.loads(output_of("--schema", "--json"))["properties"]["train_for"]


def test_models_are_listed_by_pattern_from_all_three_places() -> None:
    lines = [line.split() for line in output_of("--models", "resnet50*").splitlines()]
    assert ["resnet50_cifar", "own"] in lines
    assert ["resnet50", "torchvision"] in lines
    assert ["timm/resnet50", "timm"] in lines
    assert all("resnet50" in name for name, _ in lines)
    assert "mobilenet_v3_large" in json.loads(output_of("--models", "mobilenet_v3", "--json"))["torchvision"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["resnet51_cifar10"], "R101"),
        (["missing.toml"], "R101"),
        (["mlp_fashion_mnist", "--set", "seed"], "R103"),
        (["mlp_fashion_mnist", "--set", "sead=1"], "R104"),
        (["mlp_fashion_mnist", "--set", "seed=-1"], "R105"),
        (["--set", "seed=1"], "R106"),
        (["--models", "--schema"], "R106"),
        (["--models", "no_such_thing_at_all"], "M101"),
    ],
)
def test_wrong_input_is_a_coded_error(arguments: list[str], code: str) -> None:
    assert refusal_of(*arguments).code == code


def test_listing_recipes_imports_no_torch() -> None:
    code = (
        "import sys; from unisono.cli.main import app; sys.argv = ['unisono', 'recipes']; "
        "app(standalone_mode=False); sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
