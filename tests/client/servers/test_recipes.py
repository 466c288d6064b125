"""The recipes for servers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ragchat.errors import RecipeFolders, RecipeUnknown
from ragchat.servers.recipes import PROGRAMS, Recipe, find_recipe, read_recipes

RECIPES = read_recipes()


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_can_be_used_and_says_how_to_get_what_it_needs(name: str, tmp_path: Path) -> None:
    recipe = RECIPES[name]
    entry = recipe.entry(name, [str(tmp_path)] if recipe.takes_folders else [])
    assert ("command" in entry) != ("url" in entry)
    assert not recipe.command or recipe.command[0] in PROGRAMS
    # A key is only ever named.
    referred = re.findall(r"\$\{(\w+)\}", str([*recipe.env.values(), *recipe.headers.values()]))
    assert {*referred} == {*recipe.variables}


def test_what_is_missing_is_named_with_what_to_do(tmp_path: Path) -> None:
    missing = [*RECIPES["web-search"].missing({"PATH": str(tmp_path)})]
    assert missing == [
        "The program npx is not on your PATH. Install Node.js: https://nodejs.org.",
        "The environment variable TAVILY_API_KEY is not set. Get a key at https://app.tavily.com, and set it "
        "in your shell.",
    ]
    assert [*RECIPES["github"].missing({"GITHUB_TOKEN": "x"})] == []


def test_folders_are_stored_as_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    assert RECIPES["files"].entry("files", ["notes"])["args"][-1] == str(tmp_path / "notes")


@pytest.mark.parametrize(
    ("name", "folders", "reason"),
    [
        ("files", [], "it needs the folders"),
        ("files", ["/there/is/none"], "none is not a folder"),
        ("git", ["."], "it takes no folders"),
    ],
)
def test_folders_that_do_not_fit_are_refused(name: str, folders: list[str], reason: str) -> None:
    with pytest.raises(RecipeFolders, match=reason):
        RECIPES[name].entry(name, folders)


def test_an_unknown_recipe_names_the_nearest() -> None:
    with pytest.raises(RecipeUnknown) as caught:
        find_recipe("websearch")
    assert caught.value.hint.startswith("Did you mean web-search?")
    assert isinstance(find_recipe("git"), Recipe)
