"""Prompt files: TOML front matter between two lines of `+++`, and a text with `{{arguments}}`.

A role is a file of plain text, which follows the system prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from ragcommon.errors import flaw, os_reason
from ragcommon.files.safe_open import read_regular
from ragconfig.settings import MAX_PROMPT_BYTES
from ragconfig.toml_files import NotToml, decode_toml

T = TypeVar("T")

# The folders, in the package and in the user's settings. A user's file replaces ours of the same name.
FOLDER = "prompts"
ROLES = "roles"
_PACKS = ("documents", "calibration")  # the order in which prompts are listed
PLACEHOLDER = re.compile(r"\{\{\s*([\w-]+)\s*\}\}")
_PARTS = re.compile(r"\+\+\+\s*\n(.*?\n)?\+\+\+\s*\n(.*)", re.DOTALL)


class Argument(Struct, frozen=True, forbid_unknown_fields=True):
    """An argument in front matter; required without a `default`.

    Two arguments of the kind "version" are the earlier and the later version of the document; empty ones mean
    the last two.
    """

    description: str
    kind: Literal["text", "document", "version"] = "text"
    default: str | None = None


class Head(Struct, frozen=True, forbid_unknown_fields=True):
    """The front matter of a file."""

    title: str
    description: str
    arguments: dict[str, Argument] = {}


class Template(NamedTuple):
    head: Head
    text: str


class BrokenTemplate(Exception):
    """The message says why, as the end of a sentence."""


def templates_in(folder: Path) -> Iterator[tuple[Path, Template | BrokenTemplate]]:
    """The prompt files of a folder, which need not exist, with their content or error."""
    for path in sorted(folder.rglob("*.md")):
        try:
            yield path, read_template(path)
        except BrokenTemplate as error:
            yield path, error


def all_templates(folder: Path) -> Iterator[tuple[Path, Template | BrokenTemplate]]:
    """The packaged prompt files, then those of the user's `folder`."""
    ours = Path(__file__).with_name(FOLDER)
    return chain.from_iterable(map(templates_in, (*(ours / pack for pack in _PACKS), folder)))


def role_files(folder: Path) -> dict[str, Path]:
    """The files of the roles by name: the packaged ones, and those in the user's `folder`."""
    folders = Path(__file__).with_name(ROLES), folder
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.md"))}


def broken_in(folder: Path) -> list[str]:
    """A sentence for each invalid prompt file of a folder."""
    return [
        f"{path} is not a valid prompt: {found}."
        for path, found in templates_in(folder)
        if isinstance(found, BrokenTemplate)
    ]


def read_template(path: Path) -> Template:
    """The prompt in a file. Raises BrokenTemplate."""
    try:
        content = read_regular(path, MAX_PROMPT_BYTES).decode("utf-8-sig").replace("\r\n", "\n")
        parts = _PARTS.fullmatch(content)
        if parts is None:
            raise BrokenTemplate("it does not begin with front matter between two lines of +++")
        head = _head(decode_toml((parts[1] or "").encode()))
    except (OSError, UnicodeDecodeError) as error:
        raise BrokenTemplate(os_reason(error)) from error
    except NotToml as error:
        raise BrokenTemplate(str(error)) from None
    text = parts[2].strip()
    if not text:
        raise BrokenTemplate("it has no text below the front matter")
    if unknown := set(PLACEHOLDER.findall(text)) - head.arguments.keys():
        raise BrokenTemplate(f"its text has {{{{{min(unknown)}}}}}, which is not among its arguments")
    versions = of_kind(head.arguments, "version")
    if versions and (len(versions), len(of_kind(head.arguments, "document"))) != (2, 1):
        raise BrokenTemplate("it needs two arguments of the kind version and one of the kind document")
    return Template(head, text)


def _head(table: dict[str, object]) -> Head:
    """Raises BrokenTemplate."""
    arguments = table.get("arguments")
    for name, argument in arguments.items() if isinstance(arguments, dict) else ():
        _converted(argument, Argument, f"the argument {name}")
    return _converted(table, Head, "the front matter")


def _converted(value: object, kind: type[T], name: str) -> T:
    """Raises BrokenTemplate, whose message begins with `name`."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise BrokenTemplate(f"{name} {flaw(error)}") from None


def of_kind(arguments: Mapping[str, Argument], kind: str) -> list[str]:
    return [name for name, argument in arguments.items() if argument.kind == kind]
