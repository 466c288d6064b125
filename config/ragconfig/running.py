"""Running servers: the notes by which `ragchat` finds the one that serves its memory, and bearer tokens.

`ragmemory http` keeps a note in the state folder, where only this user can write; the folder of a memory may
have come with a repository. The key in the note proves both sides: the server answers a challenge with it,
and the client then sends it as a bearer token.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from ragconfig.errors import SettingsError
from ragconfig.files.regular import read_regular
from ragconfig.files.writing import replace_file
from ragconfig.home import Home, private_folder
from ragconfig.hosts import TOKEN_VARIABLE
from ragconfig.settings import Settings, read_key

FOLDER = "servers"
LARGEST_BYTES = 1 << 14
# Where a server serves every tool to the bearer of its key.
OWNER_PATH = "/owner"
# The parameter of /health with the challenge, and the field of its answer.
CHALLENGE, PROOF = "challenge", "proof"
# Tables of the settings that change what the server stores and finds.
TABLES = ("limits", "embedder", "reranker", "chunking", "ranking")
MEMORY_KEYS = ("busy_seconds", "undo_depth", "read_only")

# A header's value: visible ASCII, no blanks.
_TOKEN = re.compile(r"[\x21-\x7e]+")


class NoToken(SettingsError):
    origin: str
    sentence = "There is no bearer token in {origin}."
    hint = "A token is one line of ASCII letters, digits and signs."


def find_token(token_file: str) -> str | None:
    """The token in the file, else in the environment, else None. Raises SettingsError."""
    token = read_key(token_file, TOKEN_VARIABLE, kind="token file")
    if not token and not token_file:
        return None
    if not _TOKEN.fullmatch(token):
        origin = f"the file {token_file}" if token_file else f"the environment variable {TOKEN_VARIABLE}"
        raise NoToken(origin)
    return token


class Note(Struct, frozen=True):
    """A running server: the root of its addresses, its memory, and its key.

    `settings` are a hash of those that a client must share.
    """

    url: str
    memory: str
    settings: str
    key: str

    def proof(self, challenge: str) -> str:
        """What only this server, and who can read its note, answers."""
        text = f"{challenge}\0{self.memory}".encode()
        return hmac.new(self.key.encode(), text, hashlib.sha256).hexdigest()

    def proves(self, challenge: str, proof: str) -> bool:
        return hmac.compare_digest(self.proof(challenge).encode(), proof.encode())


def make_note(url: str, settings: Settings, version: str) -> Note:
    """A note with a new key. `version` is that of the program."""
    return Note(url, _real(settings.memory_path), _hash(settings, version), secrets.token_urlsafe(32))


@contextmanager
def kept(note: Note, home: Home) -> Iterator[None]:
    """Keep the note on the disk, for this user alone, unless the disk cannot be written."""
    path = _path(note.memory, home)
    with suppress(OSError):
        private_folder(path.parent)
        path.unlink(missing_ok=True)  # Its mode must not be kept, nor a link be followed.
        replace_file(path, msgspec.json.encode(note))
    try:
        yield
    finally:
        # Another server of the same memory may have replaced it.
        if _read(path) == note:
            with suppress(OSError):
                path.unlink()


def find_note(settings: Settings, version: str) -> Note | None:
    """The note of a server that would answer as one of our own with these settings; it may have ended."""
    memory = _real(settings.memory_path)
    note = _read(_path(memory, settings.home))
    return note if note and (note.memory, note.settings) == (memory, _hash(settings, version)) else None


def note_of(url: str, home: Home) -> Note | None:
    """The note of the server at a URL, whatever it serves."""
    with suppress(OSError):
        for path in (home.state / FOLDER).glob("*.json"):
            if (note := _read(path)) is not None and note.url == url:
                return note
    return None


def _real(path: Path) -> str:
    return os.path.realpath(path)


def _path(memory: str, home: Home) -> Path:
    name = hashlib.sha256(os.fsencode(memory)).hexdigest()[:32]
    return home.state / FOLDER / f"{name}.json"


def _read(path: Path) -> Note | None:
    try:
        return msgspec.json.decode(read_regular(path, LARGEST_BYTES, private=True), type=Note)
    except (OSError, msgspec.DecodeError):
        return None


def _hash(settings: Settings, version: str) -> str:
    memory = settings.tables["memory"]
    tables = [*(settings.tables[name] for name in TABLES), {key: memory[key] for key in MEMORY_KEYS}]
    return hashlib.sha256(msgspec.json.encode([version, tables])).hexdigest()
