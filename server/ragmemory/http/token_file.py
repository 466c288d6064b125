"""The server's own bearer token, created once and stored. Never on a command line or in a log."""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import suppress

from ragcommon.files.writing import private_folder
from ragconfig.home import Home
from ragconfig.keys import find_token

TOKEN_FILE = "http-token"


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
