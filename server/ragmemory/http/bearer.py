"""The bearer token: read from a file, or created once and stored. Never on a command line or in a log."""

from __future__ import annotations

import os
import re
import secrets
import sys
from contextlib import suppress

from ragconfig.errors import SettingsError
from ragconfig.home import Home, private_folder
from ragconfig.hosts import TOKEN_VARIABLE
from ragconfig.settings import read_key

TOKEN_FILE = "http-token"

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


def stored_token(home: Home) -> str:
    """This user's own token, created and printed on stderr the first time. Raises SettingsError."""
    path = private_folder(home.data) / TOKEN_FILE
    with suppress(FileExistsError):
        # Other users must not be able to read it at any time.
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        token = secrets.token_urlsafe(32)
        with os.fdopen(file, "w", encoding="ascii") as opened:
            opened.write(token + "\n")
        sys.stderr.write(
            f"A bearer token was made and kept in {path}; it is shown only now:\n\n  {token}\n\n"
        )
    found = find_token(str(path))
    assert found is not None
    return found
