"""What a notebook is, and its TOML file in the settings folder."""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ragchat.errors import NotebookExists, NotebookNameRefused, NotebookUnusable, UnknownNotebook
from ragcommon.errors import os_reason
from ragcommon.files.writing import replace_file
from ragconfig.settings import Settings

MAX_BYTES = 1 << 16
# Instructions go into every prompt; the smallest usual context is 4,096 tokens.
MAX_INSTRUCTIONS = 8_000
_NAME = re.compile(r"\w[\w-]{0,47}")
# Windows opens devices under these names.
_DEVICE = re.compile(r"con|prn|aux|nul|(com|lpt)[0-9¹²³]")
_COMMENTS = {
    "in": "The documents that are asked: a folder, a glob, a tag or a name. Empty: all.",
    "instructions": "What you want of every answer; part of the system prompt.",
    "model": "The language model. Empty: that of the settings.",
}


class Notebook(Struct, frozen=True):
    """`scope` names documents as `/in` does, "" for all; `model` "" is that of the settings."""

    name: str
    scope: str = ""
    instructions: str = ""
    model: str = ""

    @property
    def values(self) -> dict[str, str]:
        """The values by their keys in the file."""
        return {"in": self.scope, "instructions": self.instructions, "model": self.model}


def folder_of(settings: Settings) -> Path:
    return settings.home.config / "notebooks"


def checked_name(name: str) -> str:
    """The name as notebooks have it, in lower case. Raises NotebookNameRefused.

    It is the name of a file, and many file systems do not tell upper and lower case apart.
    """
    found = unicodedata.normalize("NFC", name).lower()
    if not _NAME.fullmatch(found) or _DEVICE.fullmatch(found):
        raise NotebookNameRefused(name)
    return found


def notebook_path(folder: Path, name: str) -> Path:
    """The file of a notebook. Raises NotebookNameRefused."""
    return folder / f"{checked_name(name)}.toml"


def load(folder: Path, name: str) -> Notebook:
    """Raises UnknownNotebook, NotebookUnusable, NotebookNameRefused."""
    from ragconfig.toml_files import NotToml, read_toml

    path = notebook_path(folder, name)
    try:
        table = read_toml(path, MAX_BYTES)
    except FileNotFoundError:
        raise unknown(folder, name) from None
    except OSError as error:
        raise NotebookUnusable(str(path), os_reason(error)) from None
    except NotToml as error:
        raise NotebookUnusable(str(path), f"it is not valid TOML: {error}") from None
    for key, value in table.items():
        if key not in _COMMENTS:
            (near,) = difflib.get_close_matches(key, _COMMENTS, n=1, cutoff=0.0)
            raise NotebookUnusable(str(path), f"there is no key {key[:80]}; the nearest known one is {near}")
        if not isinstance(value, str):
            raise NotebookUnusable(str(path), f"{key} takes text, not {str(value)[:80]}")
    found = Notebook(path.stem, table.get("in", ""), table.get("instructions", ""), table.get("model", ""))
    if reason := flaw_of(found):
        raise NotebookUnusable(str(path), reason)
    return found


def flaw_of(notebook: Notebook) -> str:
    """What is wrong with its values, as the end of a sentence; "" if nothing is."""
    length = len(notebook.instructions)
    if length > MAX_INSTRUCTIONS:
        return f"its instructions have {length:,} characters, and {MAX_INSTRUCTIONS:,} is the most"
    return ""


def unknown(folder: Path, name: str) -> UnknownNotebook:
    return UnknownNotebook(name, difflib.get_close_matches(name.lower(), names(folder), n=1))


def names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.toml"))


def listed(folder: Path) -> Iterator[Notebook | NotebookUnusable | NotebookNameRefused]:
    """Each notebook, or why it cannot be used."""
    for name in names(folder):
        try:
            yield load(folder, name)
        except (NotebookUnusable, NotebookNameRefused) as error:
            yield error
        except UnknownNotebook:  # a file whose name is not in lower case, or that was removed just now
            yield NotebookNameRefused(name)


def create(folder: Path, notebook: Notebook) -> Path:
    """Raises NotebookExists, NotebookUnusable, NotebookNameRefused, OSError."""
    path = notebook_path(folder, notebook.name)
    if path.exists():
        raise NotebookExists(notebook.name)
    return save(folder, notebook)


def save(folder: Path, notebook: Notebook) -> Path:
    """Raises NotebookUnusable, NotebookNameRefused, OSError."""
    path = notebook_path(folder, notebook.name)
    if reason := flaw_of(notebook):
        raise NotebookUnusable(str(path), reason)
    replace_file(path, _toml(notebook).encode(errors="replace"))
    return path


def remove(folder: Path, name: str) -> None:
    """Raises UnknownNotebook, NotebookNameRefused, OSError."""
    try:
        notebook_path(folder, name).unlink()
    except FileNotFoundError:
        raise unknown(folder, name) from None


def _toml(notebook: Notebook) -> str:
    """The file, with a comment on each key."""
    lines = ["# A notebook of ragchat: a view on its memory."]
    for key, value in notebook.values.items():
        # A JSON string is a TOML string, but for DEL.
        parts = [
            json.dumps(line, ensure_ascii=False).replace("\x7f", "\\u007f")[1:-1]
            for line in value.split("\n")
        ]
        text = '"""\n' + "\n".join(parts) + '"""' if len(parts) > 1 else f'"{parts[0]}"'
        lines += [f"# {_COMMENTS[key]}", f"{key} = {text}"]
    return "\n".join(lines) + "\n"
