"""The notes by which `ragchat` finds the running server of its memory.

`ragmemory http` keeps a note in the state folder, where only this user can write; the folder of a memory may
have come with a repository. The key in the note proves both sides: the server answers a challenge with it,
and the client then sends it as a bearer token.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from ragcommon.errors import DECODE_ERRORS
from ragcommon.files.safe_open import read_regular
from ragcommon.files.writing import replace_file

FOLDER = "servers"
MAX_NOTE_BYTES = 1 << 14
# Where a server serves every tool to the bearer of its key.
OWNER_PATH = "/owner"
# The parameter of /health with the challenge, and the field of its answer.
CHALLENGE, PROOF = "challenge", "proof"


class Note(Struct, frozen=True):
    """A running server: the root of its addresses, its memory, and its key.

    `settings` are a hash of those that a client must share.
    """

    url: str
    memory: str
    settings: str
    key: str

    def proof(self, challenge: str) -> str:
        """The answer to a challenge, which requires the key in the note."""
        text = f"{challenge}\0{self.memory}".encode()
        return hmac.new(self.key.encode(), text, hashlib.sha256).hexdigest()

    def proves(self, challenge: str, proof: str) -> bool:
        return hmac.compare_digest(self.proof(challenge).encode(), proof.encode())


def make_note(url: str, memory: Path, settings: str) -> Note:
    """A note with a new key."""
    return Note(url, os.path.realpath(memory), settings, secrets.token_urlsafe(32))


@contextmanager
def kept(note: Note, state: Path) -> Iterator[None]:
    """Write the note to the state folder, readable by this user only; a read-only disk is no error."""
    path = _path(note.memory, state)
    with suppress(OSError):
        path.unlink(missing_ok=True)  # Neither keep the old file's mode nor follow a link.
        replace_file(path, msgspec.json.encode(note))
    try:
        yield
    finally:
        # Another server of the same memory may have replaced it.
        if _read(path) == note:
            with suppress(OSError):
                path.unlink()


def find_note(memory: Path, settings: str, state: Path) -> Note | None:
    """The note of a server that would answer as one of our own with these settings; it may have ended."""
    real = os.path.realpath(memory)
    note = _read(_path(real, state))
    return note if note and (note.memory, note.settings) == (real, settings) else None


def note_of(url: str, state: Path) -> Note | None:
    """The note of the server at a URL, whatever it serves."""
    with suppress(OSError):
        for path in (state / FOLDER).glob("*.json"):
            if (note := _read(path)) is not None and note.url == url:
                return note
    return None


def _path(memory: str, state: Path) -> Path:
    name = hashlib.sha256(os.fsencode(memory)).hexdigest()[:32]
    return state / FOLDER / f"{name}.json"


def _read(path: Path) -> Note | None:
    try:
        return msgspec.json.decode(read_regular(path, MAX_NOTE_BYTES, private=True), type=Note)
    except (OSError, *DECODE_ERRORS):
        return None
