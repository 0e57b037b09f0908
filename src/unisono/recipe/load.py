"""A recipe file plus overrides becomes a frozen Recipe that remembers where each value came from."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from unisono.errors import UserError
from unisono.recipe.schema import Recipe, precision_from_apex_level


@dataclass(frozen=True, slots=True)
class LoadedRecipe:
    """A recipe, the file it was read from, and the keys that the command line set."""

    recipe: Recipe
    path: Path
    overrides: dict[str, Any]
    """Dotted key -> value, as given."""


def recipe_folder() -> Path:
    """Where the recipes lie: beside the package once installed, at the top of a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "recipes"
    return installed if installed.is_dir() else package.parents[1] / "recipes"


def recipe_names() -> list[str]:
    """The shipped recipes by name, sorted."""
    return sorted(path.stem for path in recipe_folder().glob("*.toml"))


def find_recipe(name_or_path: str) -> Path:
    """The file of a shipped recipe by name, or of a recipe of the user's by path.

    Raises:
        UserError: R101 no such recipe.
    """
    given = Path(name_or_path)
    if given.suffix == ".toml":
        if not given.is_file():
            raise UserError(
                "R101", f"no recipe file {name_or_path}", "the path does not lead to a file", "check the path"
            )
        return given
    shipped = recipe_folder() / f"{name_or_path}.toml"
    if not shipped.is_file():
        raise UserError.unknown("R101", "recipe", name_or_path, recipe_names())
    return shipped


def load_recipe(
    name_or_path: str, overrides: Iterable[str] = (), values: Mapping[str, Any] | None = None
) -> LoadedRecipe:
    """Read a recipe and lay overrides over it.

    Args:
        name_or_path: a shipped recipe's name, or a path ending in .toml.
        overrides: texts "a.b=c" in TOML's notation for values; a bare word is a string. The last one wins.
        values: dotted key -> value, already typed (the named options of the command); they win over `overrides`.

    Raises:
        UserError: R101 no such recipe, R102 not TOML, R103 an override of another form, R104 an unknown key,
            R105 a value that breaks its rule.
    """
    path = find_recipe(name_or_path)
    table = _read_toml(path)
    given: dict[str, Any] = dict(parse_override(text) for text in overrides)
    given.update(values or {})
    if "optimizer.learning_rate" not in given:
        # The rate was chosen for the file's own batch; remember it before the overrides change the batch.
        _remember_base_batch(table)
    elif isinstance(table.get("optimizer"), dict):
        # A rate from the command line is for the batch as it is, not for the one that the file's rate was chosen for.
        table["optimizer"].pop("learning_rate_global_batch_size", None)
    for key, value in given.items():
        set_key(table, key, value)
    return LoadedRecipe(validate_recipe(table, path, given), path, given)


def parse_override(text: str) -> tuple[str, Any]:
    """ "optimizer.learning_rate=0.2" -> ("optimizer.learning_rate", 0.2).

    Raises:
        UserError: R103 without a key or an equals sign.
    """
    key, equals, raw = text.partition("=")
    key, raw = key.strip(), raw.strip()
    if not equals or not key or not raw:
        raise UserError(
            "R103",
            f"cannot read --set {text!r}",
            "an override has the form section.key=value",
            "write for example --set optimizer.learning_rate=0.2",
        )
    try:
        return key, tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        return key, raw


def validate_recipe(table: dict[str, Any], path: Path, overridden: Iterable[str] = ()) -> Recipe:
    """Check a table against the schema.

    Args:
        overridden: dotted keys that the command line set, so that an error names the place it is in.

    Raises:
        UserError: R104 an unknown key, with the nearest names; R105 a value that breaks its rule.
    """
    if isinstance(table.get("precision"), str):
        table = {**table, "precision": _apex_level(table["precision"], path)}
    try:
        return Recipe.model_validate(table)
    except ValidationError as error:
        raise _as_user_error(error, path, overridden) from None


def _apex_level(level: str, path: Path) -> dict[str, Any]:
    if level in ("fp32", "bf16", "fp16"):
        return {"compute": level}
    try:
        return precision_from_apex_level(level).model_dump()
    except ValueError as error:
        raise UserError(
            "R105", f"precision = {level!r} in {path.name}", str(error), "use fp32, bf16, fp16, O0, O1 or O2"
        ) from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(
            "R102", f"cannot read {path}", f"it is not valid TOML: {error}", "correct the line named"
        ) from None
    except OSError as error:
        raise UserError(
            "R102", f"cannot read {path}", error.strerror or str(error), "check the path and its permissions"
        ) from None


def _remember_base_batch(table: dict[str, Any]) -> None:
    optimizer = table.get("optimizer")
    replicas, batch = table.get("replicas", 8), table.get("per_replica_batch_size")
    if isinstance(optimizer, dict) and isinstance(replicas, int) and isinstance(batch, int):
        optimizer.setdefault("learning_rate_global_batch_size", replicas * batch)


def set_key(table: dict[str, Any], dotted: str, value: Any) -> None:
    """Set a dotted key of a recipe table, making sections on the way.

    Raises:
        UserError: R104 the key goes below a plain value.
    """
    *parents, last = dotted.split(".")
    here: Any = table
    for depth, parent in enumerate(parents):
        if isinstance(here.get(parent), str) and parent == "precision":
            here[parent] = _apex_level(here[parent], Path("--set"))
        below_value = depth == 0 and parent in Recipe.model_fields and _section_at((parent,)) is None
        here = here.setdefault(parent, {})
        if below_value or not isinstance(here, dict):
            raise UserError(
                "R104",
                f"--set {dotted} goes below a plain value",
                f"{parent} has no keys of its own",
                f"set {parent} itself",
            )
    here[last] = value


def _as_user_error(error: ValidationError, path: Path, overridden: Iterable[str]) -> UserError:
    # A misspelt key is most often the reason why another one is missing, so it is told first.
    first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    location = _without_union_tag(first["loc"])
    dotted = ".".join(str(part) for part in location)
    from_command = any(f"{dotted}.".startswith(f"{key}.") for key in overridden)
    place = "on the command line" if from_command else f"in {path.name}"
    if first["type"] == "extra_forbidden":
        section = _section_at(location[:-1])
        known = list(section.model_fields) if section else list(Recipe.model_fields)
        return UserError.unknown("R104", f"recipe key {place}:", dotted.rpartition(".")[2], known)
    if first["type"] == "missing":
        return UserError("R105", f"{path.name} lacks {dotted}", "a recipe cannot do without it", f"add {dotted} = ...")
    message = first["msg"].removeprefix("Value error, ")
    value = first.get("input")
    shown = "" if isinstance(value, dict) else f" = {value!r}"
    return UserError(
        "R105",
        f"{dotted or 'recipe'}{shown} {place} is not allowed",
        message,
        f"correct {dotted or 'the recipe'}; `unisono recipes --schema` explains every key",
    )


def _without_union_tag(location: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """pydantic ends the place of a value that may have several types with the type it tried."""
    is_tag = len(location) > 1 and isinstance(location[-1], str) and _section_at(location[:-1]) is None
    return location[:-1] if is_tag else location


def _section_at(location: tuple[int | str, ...]) -> type[BaseModel] | None:
    section: type[BaseModel] = Recipe
    for part in location:
        field = section.model_fields.get(str(part))
        if field is None or not isinstance(field.annotation, type) or not issubclass(field.annotation, BaseModel):
            return None
        section = field.annotation
    return section
