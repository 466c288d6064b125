"""The server's own bearer token, created once and stored. Never on a command line or in a log."""

from __future__ import annotations

import sys

from ragconfig.home import Home
from ragconfig.keys import HTTP_TOKEN, stored_token


def own_token(home: Home) -> str:
    """This user's own token, created and printed on stderr the first time. Raises SettingsError."""
    path = home.data / HTTP_TOKEN
    token, made = stored_token(path)
    if made:
        sys.stderr.write(
            f"A bearer token was made and kept in {path}; it is shown only now:\n\n  {token}\n\n"
        )
    return token
