"""Secrets in files or environment variables: keys of models and embedders, bearer tokens."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ragcommon.errors import os_reason
from ragcommon.files.safe_open import ReadableByOthers, read_regular
from ragcommon.files.writing import private_folder
from ragcommon.hosts import TOKEN_VARIABLE
from ragconfig.errors import SettingsError, UnreadableFile
from ragconfig.home import user_path
from ragconfig.redaction import add_secret

# Where models and embedders are if no other address is set.
OPENAI_URL = "https://api.openai.com/v1"
# The files of our own tokens, beside the memory.
HTTP_TOKEN, WEB_TOKEN = "http-token", "web-token"
MAX_SECRET_BYTES = 1 << 14
# Visible ASCII without spaces, as allowed in a header.
_TOKEN = re.compile(r"[\x21-\x7e]+")


class NoToken(SettingsError):
    origin: str
    code = "SETTINGS_INVALID"
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


def stored_token(path: Path) -> tuple[str, bool]:
    """This user's own token in the file `path`, and whether it was made just now. Raises SettingsError."""
    private_folder(path.parent)
    made = False
    with suppress(FileExistsError):
        # Other users must not be able to read it at any time.
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(file, "w", encoding="ascii") as opened:
                opened.write(secrets.token_urlsafe(32) + "\n")
        except OSError as error:  # On a full disk: an empty file would be refused from then on.
            path.unlink()
            error.filename = str(path)
            raise
        made = True
    found = find_token(str(path))
    assert found is not None
    return found, made


def read_key(
    key_file: str,
    variable: str = "OPENAI_API_KEY",
    environ: Mapping[str, str] = os.environ,
    *,
    kind: str = "key file",
) -> str:
    """The secret in `key_file`, else in the environment variable, else "". Raises SettingsError.

    Only the owner may have access to the file. The secret is redacted in logs and messages. `kind` describes
    the file in errors.
    """
    secret = _read_secret(key_file, kind) if key_file else environ.get(variable, "")
    add_secret(secret)
    return secret


def _read_secret(path: str, kind: str) -> str:
    hint = ""
    try:
        return read_regular(user_path(path), MAX_SECRET_BYTES, private=True).decode("utf-8").strip()
    except ReadableByOthers as error:
        reason, hint = os_reason(error), f"Make it yours alone: chmod 600 {path}"
    except (OSError, UnicodeDecodeError) as error:
        reason = os_reason(error)
    raise UnreadableFile(kind, path, reason, hint)
