"""What the READMEs promise is there: commands, options, files, and both languages in step."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unisono.cli.main import app
from unisono.recipe.load import recipe_names

ROOT = Path(__file__).resolve().parents[2]
READMES = ["README.md", "README.zh-CN.md"]
PAGES = [*READMES, *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_to_a_file_leads_to_one(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert ((ROOT / page).parent / target).exists(), target


def commands(page: str) -> list[list[str]]:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```\w*\n(.*?)```", text, re.S)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line.split() for line in lines if line.startswith("unisono ")]


@pytest.mark.parametrize("page", READMES)
def test_every_command_and_option_of_the_readme_exists(page: str) -> None:
    for words in commands(page):
        words = words[1:]
        path = [word for word in words[:2] if re.fullmatch(r"[a-z]+", word) and word not in recipe_names()]
        help_text = ""
        for depth in (2, 1):
            result = CliRunner().invoke(app, [*path[:depth], "--help"], terminal_width=200, color=False)
            if result.exit_code == 0:
                help_text = re.sub(r"\x1b\[[0-9;]*m", "", result.output)
                break
        assert help_text, words
        own = words[: words.index("--")] if "--" in words else words
        for option in (word for word in own if word.startswith("--")):
            assert option in help_text, (words, option)


def test_both_readmes_show_the_same_commands() -> None:
    assert commands(READMES[0]) == commands(READMES[1])


def test_recipes_named_in_the_readme_exist() -> None:
    for words in commands("README.md"):
        if words[1] in ("train", "plan", "verify") and re.match(r"[a-z]", words[2]):
            assert words[2] in recipe_names(), words
