"""A recipe explained: nothing left out, and what is shown is itself the same recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from unisono.recipe.describe import as_markdown, as_toml, origins_of, schema_keys, sections
from unisono.recipe.load import load_recipe, recipe_names


@pytest.mark.parametrize("name", recipe_names())
def test_the_recipe_shown_is_a_file_of_the_same_recipe(name: str, tmp_path: Path) -> None:
    loaded = load_recipe(name, ["seed=7", "precision=O2"])
    path = tmp_path / "shown.toml"
    path.write_text("\n".join(as_toml(loaded)), encoding="utf-8")
    assert load_recipe(str(path)).recipe == loaded.recipe


def test_every_key_and_section_is_explained() -> None:
    keys = schema_keys()
    assert len(keys) > 60
    assert [key.dotted for key in keys if not key.meaning.endswith((".", ")"))] == []
    assert {key.section for key in keys} == {"", *sections()}
    assert all(sections().values())


def test_each_value_says_where_it_is_from() -> None:
    origins = origins_of(load_recipe("resnet20_cifar10", ["optimizer.momentum=0.8", "precision=O2"]))
    assert origins["optimizer.momentum"] == "command line"
    assert origins["precision.loss_scale"] == "command line"
    assert origins["optimizer.name"] == "resnet20_cifar10.toml"
    assert origins["optimizer.learning_rate_global_batch_size"] == "file's global batch"
    assert origins["ema.decay"] == "default"


def test_the_documentation_lists_every_key_as_the_schema_has_it() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "recipes.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("<!-- keys: unisono.recipe.describe.as_markdown -->\n")
    assert rest.strip() == "\n".join(as_markdown()).strip(), (
        "docs/recipes.md is behind the schema; put below its marker: "
        'python -c "from unisono.recipe.describe import as_markdown; print(*as_markdown(), sep=chr(10))"'
    )
