"""`unisono recipes`: what can be trained, and what every key of a recipe means. Only --models imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unisono.cli import render
from unisono.errors import UserError

if TYPE_CHECKING:
    from unisono.recipe.schema import Recipe


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("recipes", rich_help_panel="Train")(recipes)


def recipes(
    name: Annotated[
        str | None,
        typer.Argument(help="A recipe, or a path ending in .toml; with --models a pattern such as 'resnet*'."),
    ] = None,
    models: Annotated[bool, typer.Option("--models", help="List the models that --model takes.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Explain every key of a recipe.")] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="With a recipe: section.key=value. Repeatable.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON; with --schema, a JSON schema.")] = False,
) -> None:
    """List the recipes; with a NAME, show that one whole: every key, its value, where it is from, what it means.

    What it shows of a recipe is itself a recipe file: `unisono recipes NAME > mine.toml`, then `unisono train mine.toml`.
    """
    if models and schema:
        raise UserError("R106", "--models and --schema together", "each is a list of its own", "give one of them")
    if settings and (name is None or models or schema):
        raise UserError("R106", "--set without a recipe", "it changes the recipe that is shown", "name a recipe")
    if models:
        _models(name, json)
    elif schema:
        _schema(json)
    elif name is not None:
        _one(name, settings or [], json)
    else:
        _list(json)


def _list(as_json: bool) -> None:
    from unisono.recipe.load import load_recipe, recipe_names

    rows = [_row(load_recipe(name).recipe) for name in recipe_names()]
    if as_json:
        render.as_json(rows)
        return
    table = [("recipe", "model", "data", "global batch", "length", "reference top-1")]
    for row in rows:
        reference, batch = row["reference_top1_accuracy"], row["global_batch_size"]
        table.append(
            (
                row["name"],
                row["model"],
                row["data"],
                f"{batch} = {batch // row['replicas']} x {row['replicas']}",
                row["train_for"],
                "-" if reference is None else f"{reference:.2%}",
            )
        )
    _columns(table)
    render.line()
    render.line(
        "unisono recipes NAME shows one; any other model goes with --model (unisono recipes --models lists them)"
    )


def _row(recipe: Recipe) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "model": recipe.model.name,
        "data": recipe.data.name,
        "global_batch_size": recipe.global_batch_size,
        "replicas": recipe.replicas,
        "train_for": str(recipe.train_for),
        "reference_top1_accuracy": recipe.reference.top1_accuracy,
        "reference_source": recipe.reference.source,
        "description": recipe.description,
    }


def _columns(table: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        render.line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _one(name: str, settings: list[str], as_json: bool) -> None:
    from unisono.recipe.describe import as_toml, header_comment, origins_of
    from unisono.recipe.load import load_recipe

    loaded = load_recipe(name, settings)
    if as_json:
        recipe = loaded.recipe.model_dump(mode="json")
        render.as_json({"recipe": recipe, "origins": origins_of(loaded), "about": header_comment(loaded)})
        return
    for text in header_comment(loaded):
        render.line(f"# {text}".rstrip())
    render.line("#")
    for text in as_toml(loaded):
        render.line(text)


def _schema(as_json: bool) -> None:
    if as_json:
        from unisono.recipe.schema import Recipe

        render.as_json(Recipe.model_json_schema())
        return
    from unisono.recipe.describe import default_in_words, schema_keys, sections

    section, about = "", sections()
    render.line("A recipe is a TOML file. A duration is a number and a unit: epochs, steps or images.")
    for key in schema_keys():
        if key.section != section:
            section = key.section
            render.line()
            render.line(f"[{section}]  {about[section]}")
        render.line(f"{key.name} ({key.kind}; {default_in_words(key)})")
        render.line(f"    {key.meaning}")


def _models(pattern: str | None, as_json: bool) -> None:
    from fnmatch import fnmatch

    from unisono.models import model_names

    known = model_names()
    if pattern is not None:
        glob = pattern if any(sign in pattern for sign in "*?[") else f"*{pattern}*"
        found = {
            origin: [name for name in names if fnmatch(name.removeprefix("timm/"), glob)]
            for origin, names in known.items()
        }
        if not any(found.values()):
            raise UserError.unknown("M101", "model", pattern, [name for names in known.values() for name in names])
        known = found
    if as_json:
        render.as_json(known)
        return
    for origin, names in known.items():
        for name in names:
            render.line(f"{name.ljust(48)} {origin}")
