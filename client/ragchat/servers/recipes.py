"""Recipes for popular servers: the TOML files in `ragconfig/servers`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

import ragconfig
from ragchat.errors import RecipeFolders, RecipeUnknown
from ragconfig.home import user_path

FOLDER = Path(ragconfig.__file__).parent / "servers"
# Programs that start servers, and how to get them.
PROGRAMS = {
    "npx": "Install Node.js: https://nodejs.org",
    "uvx": "Install uv: https://docs.astral.sh/uv",
    "docker": "Install Docker: https://docs.docker.com/get-started/get-docker",
}


class Recipe(Struct, frozen=True, forbid_unknown_fields=True):
    """The entry of a server for a configuration file, and its requirements."""

    description: str
    command: list[str] = []
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    takes_folders: bool = False
    # The environment variables that it refers to, and how to get their values.
    variables: dict[str, str] = {}

    def entry(self, name: str, folders: Sequence[str]) -> dict[str, Any]:
        """The entry for a configuration file. Raises RecipeFolders."""
        if self.takes_folders and not folders:
            raise RecipeFolders(name, "it needs the folders that the server may use")
        paths = [user_path(folder) for folder in folders]
        for path in paths:
            if not self.takes_folders:
                raise RecipeFolders(name, "it takes no folders")
            if not path.is_dir():
                raise RecipeFolders(name, f"{path} is not a folder")
        program, *arguments = self.command or [""]
        known = {"command": program, "args": [*arguments, *map(str, paths)], "env": self.env}
        known |= {"url": self.url, "headers": self.headers}
        return {key: value for key, value in known.items() if value}

    @property
    def needs(self) -> list[str]:
        """The requirements: the program, environment variables, and folders."""
        return [*self.command[:1], *self.variables, *(["folders"] if self.takes_folders else [])]

    def missing(self, environ: Mapping[str, str] = os.environ) -> Iterator[str]:
        """A sentence for each missing requirement that says what to do."""
        if self.command:
            yield from missing_program(self.command[0], environ)
        for variable, hint in self.variables.items():
            if not environ.get(variable):
                yield f"The environment variable {variable} is not set. {hint}, and set it in your shell."


def missing_program(program: str, environ: Mapping[str, str]) -> Iterator[str]:
    """A sentence that says what to do if the program is missing."""
    if shutil.which(program, path=environ.get("PATH")) is None:
        is_name = Path(program).name == program
        why = f"The program {program} is not on your PATH" if is_name else f"There is no program {program}"
        yield f"{why}. {PROGRAMS.get(program, 'Install it, or correct its name')}."


def read_recipes() -> dict[str, Recipe]:
    """All recipes by name, in alphabetical order."""
    files = sorted(FOLDER.glob("*.toml"))
    return {file.stem: msgspec.toml.decode(file.read_bytes(), type=Recipe) for file in files}


def find_recipe(name: str) -> Recipe:
    """Raises RecipeUnknown."""
    return RecipeUnknown.look_up(name, read_recipes())
