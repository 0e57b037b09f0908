"""Every coded error is in a table, every table row is used, and docs/errors.md is made from them."""

from __future__ import annotations

import ast
import csv
import importlib.util
from pathlib import Path

from unisono.errors import ExitCode, UserError, nearest_names

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "unisono"


def raised_codes() -> set[str]:
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            function = node.func
            direct = isinstance(function, ast.Name) and function.id == "UserError"
            unknown = isinstance(function, ast.Attribute) and function.attr == "unknown" and isinstance(function.value, ast.Name)
            given = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "code")]
            if (direct or (unknown and function.value.id == "UserError")) and given and isinstance(given[0], ast.Constant):  # type: ignore[union-attr]  # an attribute of a name
                found.add(str(given[0].value))
    return found


def listed_codes() -> dict[str, dict[str, str]]:
    rows = {}
    for path in sorted((SOURCE / "codes").glob("*.tsv")):
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                assert row["code"] not in rows, f"{row['code']} is listed twice"
                assert row["code"][0] == path.stem
                rows[row["code"]] = row
    return rows


def test_every_code_that_is_raised_is_listed_with_title_meaning_and_remedy() -> None:
    listed = listed_codes()
    assert raised_codes() - listed.keys() == set()
    assert all(row["title"] and row["meaning"] and row["remedy"] for row in listed.values())


def test_docs_errors_is_made_from_the_tables() -> None:
    spec = importlib.util.spec_from_file_location("generate_errors", ROOT / "docs" / "generate_errors.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "errors.md").read_text(encoding="utf-8") == module.document(), "run python docs/generate_errors.py"


def test_a_user_error_survives_the_way_between_processes() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(UserError("D101", "a", "b", "c", exit_code=ExitCode.CRASHED)))
    assert (error.code, error.what, error.why, error.fix, error.exit_code) == ("D101", "a", "b", "c", ExitCode.CRASHED)


def test_an_unknown_name_is_answered_with_the_nearest_ones() -> None:
    assert nearest_names("ResNet5O", ["resnet50", "resnet18", "vgg"])[0] == "resnet50"
    assert "did you mean resnet50" in UserError.unknown("M101", "model", "resnet51", ["resnet50", "vgg"]).fix
    assert "known: a, b" in UserError.unknown("M101", "model", "zzz", ["b", "a"]).fix
