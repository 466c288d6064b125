"""The file of the setting `http.memories`: named memories, and the tokens of those who use them.

    [notes]
    path = "notes.db"

    [notes.tokens]
    anne = { right = "write", sha256 = "…" }

It holds digests instead of tokens, which are long and random, so it is no secret.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from ragcommon.errors import flaw, os_reason
from ragcommon.files.safe_open import read_regular
from ragcommon.files.writing import replace_file
from ragconfig.errors import InvalidSetting, SettingsError, UnreadableFile
from ragconfig.home import user_path
from ragconfig.settings import PGVECTOR, Settings
from ragconfig.toml_files import NotToml, decode_toml
from ragmemory.types.rights import RIGHTS, Right

T = TypeVar("T")

# A token takes about 120 bytes of it.
MAX_BYTES = 1 << 21
KIND = "file of memories"


class Token(Struct, frozen=True, forbid_unknown_fields=True):
    right: Right
    sha256: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]


# Without capital letters: file systems and people confuse names that differ in them only.
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
OWNER = re.compile(r"[A-Za-z0-9_-]{1,64}")
MEMORY_FORM = "it has up to 64 of a-z, 0-9, - and _, the first a letter or digit"
OWNER_FORM = "it has up to 64 letters, digits, - and _"


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """One memory. `path` and `roots` may be relative to the folder of the file."""

    path: str = ""
    url: str = ""
    roots: list[str] = []
    tokens: dict[str, Token] = {}


class UnknownMemory(SettingsError):
    """`name` is the memory for which a token was to be made."""

    name: str
    file: str
    code = "SETTINGS_INVALID"
    sentence = "There is no memory {name!r} in {file}."
    hint: str = 'Add it there first: a line [{name}], and below it path = "{name}.db".'


class NotInserted(SettingsError):
    """An owner with other characters, or a file with tokens in another form than one line for each."""

    owner: str
    file: str
    memory: str
    code = "SETTINGS_INVALID"
    sentence = "The token of {owner!r} cannot be put into {file}."
    hint = (
        "An owner has letters, digits, _ and -. "
        "The file needs [{memory}.tokens] as a line of its own, and below it a line for each token."
    )


def token_digest(token: str) -> str:
    return hashlib.sha256(token.encode("latin-1", "replace")).hexdigest()


def read_memories(path: Path, settings: Settings) -> dict[str, tuple[Entry, Settings]]:
    """The memories of the file by name, with the settings of each. Raises SettingsError."""
    return _parse(path, _content(path), settings)


def _content(path: Path) -> bytes:
    try:
        return read_regular(path, MAX_BYTES)
    except OSError as error:
        raise UnreadableFile(KIND, str(path), os_reason(error)) from None


def _parse(path: Path, content: bytes, settings: Settings) -> dict[str, tuple[Entry, Settings]]:
    try:
        entries = {name: _entry(name, table) for name, table in decode_toml(content).items()}
    except (NotToml, _Flawed) as error:
        raise UnreadableFile(KIND, str(path), f"it is not valid: {error}") from None
    owners: dict[str, str] = {}
    for name, entry in entries.items():
        for token in entry.tokens.values():
            if (other := owners.setdefault(token.sha256, name)) != name:
                raise UnreadableFile(KIND, str(path), f"{other} and {name} have a token in common")
    return {name: (entry, _settings_of(settings, path, name, entry)) for name, entry in entries.items()}


def _entry(name: str, table: object) -> Entry:
    """Raises _Flawed."""
    if not NAME.fullmatch(name):
        raise _Flawed(f"{name!r} is not the name of a memory: {MEMORY_FORM}")
    tokens = table.get("tokens") if isinstance(table, dict) else None
    for owner, token in tokens.items() if isinstance(tokens, dict) else ():
        place = f"[{name}.tokens]"
        if not OWNER.fullmatch(owner):
            raise _Flawed(f"{owner!r} in {place} is not the name of an owner: {OWNER_FORM}")
        needed = f"right ({', '.join(RIGHTS)}) and sha256 (64 digits, 0-9 and a-f)"
        _converted(token, Token, f"{owner} in {place}", f"it needs {needed}")
    return _converted(table, Entry, f"[{name}]", f"it may have {', '.join(Entry.__struct_fields__)}")


def _converted(value: object, kind: type[T], place: str, wanted: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _Flawed(f"{place} {flaw(error)}; {wanted}") from None


class _Flawed(Exception):
    """What is wrong, with the memory and the owner."""


def _settings_of(settings: Settings, file: Path, name: str, entry: Entry) -> Settings:
    origin = f"[{name}] in {file}"
    if bool(entry.path) == bool(entry.url):
        raise InvalidSetting(name, "it needs either a path or a url", origin)

    def absolute(path: str) -> str:
        try:
            return str(user_path(path if path.startswith("~") else file.parent / path))
        except OSError as error:
            raise InvalidSetting(f"{name}: {path}", os_reason(error), origin) from None

    named = settings.with_memory(Path(absolute(entry.path)), origin)
    roots = [root if root == "*" else absolute(root) for root in entry.roots]
    found = named.with_table("memory", roots=roots).with_table("store", url=entry.url)
    if entry.url or settings.tables["index"]["url"] != PGVECTOR:  # A file has no pgvector.
        found = found.with_table("index", url=settings.tables["index"]["url"])
    found.memory_place, found.index_url  # noqa: B018 (they check the URLs)
    return found


def make_token(path: Path, settings: Settings, memory: str, owner: str, right: Right) -> str:
    """A new token, whose digest replaces that of `owner` in the file. Raises SettingsError, OSError."""
    with _alone(path.resolve().parent):
        content = _content(path)
        known = _parse(path, content, settings)
        if memory not in known:
            if not NAME.fullmatch(memory):
                raise UnknownMemory(memory, str(path), f"It cannot be the name of one: {MEMORY_FORM}.")
            raise UnknownMemory(memory, str(path))
        secret = secrets.token_urlsafe(32)
        token = Token(right, token_digest(secret))
        line = f'{owner} = {{ right = "{right}", sha256 = "{token.sha256}" }}'
        content = _with_line(content.decode("utf-8-sig"), f"[{memory}.tokens]", owner, line).encode()
        entry, its_settings = known[memory]
        known[memory] = replace(entry, tokens={**entry.tokens, owner: token}), its_settings
        try:
            is_as_meant = _parse(path, content, settings) == known
        except SettingsError:
            is_as_meant = False
        if not is_as_meant:
            raise NotInserted(owner, str(path), memory)
        replace_file(path, content)
        return secret


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let no other process make a token there meanwhile. Windows cannot lock a folder."""
    if sys.platform == "win32" or not folder.is_dir():
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _with_line(text: str, table: str, owner: str, line: str) -> str:
    """The text of the file with a line in a table, in place of the owner's if there is one."""
    lines = text.splitlines()
    if table not in (found := [one.strip() for one in lines]):
        return "\n".join([*lines, "", table, line, ""])
    first = found.index(table) + 1
    end = next((n for n in range(first, len(lines)) if found[n].startswith("[")), len(lines))
    kept = [one for one in lines[first:end] if one.partition("=")[0].strip().strip("\"'") != owner]
    return "\n".join([*lines[:first], line, *kept, *lines[end:], ""])
