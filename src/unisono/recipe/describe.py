"""A recipe explained: every key with its value, where the value comes from, and what the key means."""

from __future__ import annotations

import json
import tomllib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from unisono.recipe.duration import DurationValue
from unisono.recipe.load import LoadedRecipe
from unisono.recipe.schema import Recipe


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the schema."""

    section: str
    """Empty for the keys above all sections."""
    name: str
    kind: str
    """Its type in words: "integer", "duration", "sgd | rmsprop"."""
    default: Any
    """`...` when a recipe cannot do without the key."""
    meaning: str

    @property
    def dotted(self) -> str:
        """As `--set` takes it."""
        return f"{self.section}.{self.name}" if self.section else self.name


def schema_keys() -> list[Key]:
    """Every key of a recipe, in the order of the schema: the top first, then the sections."""
    return list(_keys(Recipe, ""))


def sections() -> dict[str, str]:
    """Section -> what it is about."""
    return {
        name: _first_line(field.annotation.__doc__)
        for name, field in Recipe.model_fields.items()
        if _is_section(field.annotation)
    }


def _keys(section: type[BaseModel], name: str) -> Iterator[Key]:
    below: list[tuple[str, type[BaseModel]]] = []
    for key, field in section.model_fields.items():
        annotation = field.annotation
        if _is_section(annotation):
            below.append((key, annotation))
        else:
            default = ... if field.is_required() else field.default
            yield Key(name, key, kind_in_words(field), default, field.description or "")
    for key, annotation in below:
        yield from _keys(annotation, key)


def _is_section(annotation: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation is not DurationValue


def kind_in_words(field: FieldInfo) -> str:
    """The type of a field as a person writes it in TOML."""
    return _words(field.annotation)


def _words(annotation: Any) -> str:
    plain = {int: "integer", float: "number", str: "text", bool: "true | false", type(None): "unset"}
    if annotation in plain:
        return plain[annotation]
    if annotation is DurationValue:
        return "duration"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " | ".join(str(value) for value in arguments)
    if origin in (Union, types.UnionType):
        return " | ".join(_words(part) for part in arguments)
    if origin is tuple:
        return (
            f"list of {_words(arguments[0])}" if arguments[-1] is ... else f"{len(arguments)} x {_words(arguments[0])}"
        )
    return _words(arguments[0])  # Annotated[...]: the type without its limits


def _first_line(text: str | None) -> str:
    return (text or "").strip().splitlines()[0]


def value_of(recipe: Recipe, key: Key) -> Any:
    """The value that a recipe has for a key."""
    return getattr(getattr(recipe, key.section) if key.section else recipe, key.name)


def origins_of(loaded: LoadedRecipe) -> dict[str, str]:
    """Dotted key -> where its value comes from: "command line", the file's name, "file's global batch" or "default"."""
    table = tomllib.loads(loaded.path.read_text(encoding="utf-8"))
    return {key.dotted: _origin(loaded, table, key) for key in schema_keys()}


def _origin(loaded: LoadedRecipe, table: dict[str, Any], key: Key) -> str:
    if any(key.dotted == given or key.dotted.startswith(f"{given}.") for given in loaded.overrides):
        return "command line"
    section = table.get(key.section, {}) if key.section else table
    # precision = "O2" sets the whole section.
    if isinstance(section, str) or key.name in section:
        return loaded.path.name
    if key.dotted == "optimizer.learning_rate_global_batch_size" and value_of(loaded.recipe, key) is not None:
        return "file's global batch"
    return "default"


def as_toml(loaded: LoadedRecipe) -> list[str]:
    """The whole recipe as the lines of a recipe file: each key's meaning above it, and where its value is from behind it."""
    lines: list[str] = []
    section, about, origins = "", sections(), origins_of(loaded)
    for key in schema_keys():
        if key.section != section:
            section = key.section
            lines += ["", f"# {about[section]}", f"[{section}]"]
        value = value_of(loaded.recipe, key)
        lines.append(f"# {key.meaning}")
        if value is None:
            lines.append(f"# {key.name} is not set")
        else:
            lines.append(f"{key.name} = {toml_value(value)}  # from: {origins[key.dotted]}")
    return lines


def as_markdown() -> list[str]:
    """The schema as the tables of docs/recipes.md."""
    lines: list[str] = []
    section, about = None, sections()
    for key in schema_keys():
        if key.section != section:
            section = key.section
            title = f"### `[{section}]`" if section else "### Above all sections"
            lines += ["", title, ""]
            lines += [about[section], ""] if section else []
            lines += ["| key | kind | default | meaning |", "|---|---|---|---|"]
        kind = key.kind.replace(" | ", ", ")
        lines.append(f"| `{key.name}` | {kind} | {default_in_words(key)} | {key.meaning} |")
    return lines[1:]


def default_in_words(key: Key) -> str:
    """A key's default as TOML, or "required" or "unset"."""
    if key.default is ...:
        return "required"
    return "unset" if key.default is None else toml_value(key.default)


def toml_value(value: Any) -> str:
    """A value in TOML's notation."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, DurationValue)):
        return json.dumps(str(value), ensure_ascii=False)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(toml_value(part) for part in value)}]"
    return repr(value)


def header_comment(loaded: LoadedRecipe) -> list[str]:
    """What the recipe file says of itself at its head, without the comment signs."""
    head: list[str] = []
    for line in loaded.path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        head.append(line.removeprefix("#").removeprefix(" "))
    return head
