"""The house's own laws, read off the syntax trees: who may print, read the environment, name a vendor's module."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "unisono"
TESTS = Path(__file__).resolve().parents[1]
FILES = sorted(SOURCE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def places(paths: Iterator[tuple[Path, int]]) -> list[str]:
    return [f"{room(path)}:{line}" for path, line in paths]


def nodes(kind: type[ast.AST]) -> Iterator[tuple[Path, ast.AST]]:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, kind):
                yield path, node


def test_no_folder_of_tests_is_left_out_by_its_name(pytestconfig: pytest.Config) -> None:
    # pytest's own list of folders to leave out has `dist` in it.
    names = {folder.name for file in TESTS.rglob("test_*.py") for folder in [file, *file.parents] if TESTS in folder.parents}
    left_out = pytestconfig.getini("norecursedirs")
    assert [name for name in names if any(fnmatch(name, pattern) for pattern in left_out)] == []


def test_print_is_called_in_render_alone() -> None:
    calls = (
        (path, node.lineno)
        for path, node in nodes(ast.Call)
        if isinstance(node.func, ast.Name)
        and node.func.id == "print"
        and room(path) != "cli/render.py"
        and not room(path).startswith("simulator/")
    )
    assert places(calls) == []


def test_the_environment_is_read_only_where_the_design_says() -> None:
    allowed = ("job/world.py", "job/launch.py", "job/agent.py", "platforms/", "simulator/", "doctor/")
    reads = (
        (path, node.lineno)
        for path, node in nodes(ast.Attribute)
        if node.attr in ("environ", "getenv")
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
        and not room(path).startswith(allowed)
    )
    assert places(reads) == []


def test_vendor_modules_are_named_only_in_platforms_and_simulator() -> None:
    attributes = (
        (path, node.lineno)
        for path, node in nodes(ast.Attribute)
        if node.attr in ("cuda", "npu")
        and isinstance(node.value, ast.Name)
        and node.value.id in ("torch", "torch_npu")
        and not room(path).startswith(("platforms/", "simulator/"))
    )
    assert places(attributes) == []
    imports = (
        (path, node.lineno)
        for path, node in nodes(ast.Import)
        if any(alias.name.split(".")[0] == "torch_npu" for alias in node.names)
        and not room(path).startswith(("platforms/", "simulator/"))
    )
    assert places(imports) == []


def test_nobody_branches_on_a_platforms_name() -> None:
    names = {"cpu", "cuda", "npu"}
    branches = (
        (path, node.lineno)
        for path, node in nodes(ast.Compare)
        if isinstance(node.left, ast.Attribute)
        and node.left.attr == "name"
        and any(isinstance(right, ast.Constant) and right.value in names for right in node.comparators)
        and not room(path).startswith(("platforms/", "simulator/", "cli/", "doctor/", "bench/"))
    )
    assert places(branches) == []


def test_no_file_is_longer_than_400_lines() -> None:
    long = {room(path): count for path in FILES if (count := len(path.read_text(encoding="utf-8").splitlines())) > 400}
    assert long == {}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["plan", "mlp_fashion_mnist"],
        ["train", "--help"],
        ["recipes"],
        ["explain", "EI0006"],
        ["migrate", "--help"],
    ],
)
def test_light_commands_start_without_torch(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        f"sys.argv = ['unisono', *{arguments!r}]\n"
        "from unisono.cli.main import main\n"
        "code = 0\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    code = end.code or 0\n"
        "assert 'torch' not in sys.modules, 'torch was imported'\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
