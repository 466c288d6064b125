"""The path in a file's URI, and web addresses. Both programs read them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

_ADDRESS = re.compile(r"(?!file:)[a-z][a-z0-9+.-]+://", re.IGNORECASE)
# Stands in place of a secret.
HIDDEN = "***"
# The user name and password in an address.
USERINFO = re.compile(r"(?<=://)[^/?#]*(?=@)")
# The value of a parameter whose name ends with a word for a secret, also in other text.
SECRET_VALUE = re.compile(
    r"([?&](?:[^?=&#\s]{0,40}[_.-])?(?:api|access|auth)?"
    r"(?:key|token|secret|sig(?:nature)?|pass(?:word|wd)?|pwd|credentials?)=)([^&#\s\"'<>]+(?<![.,;:)]))",
    re.IGNORECASE,
)


def is_address(words: str) -> bool:
    """Whether words are an address on the web, or of another protocol, rather than a path or a file's URI."""
    return _ADDRESS.match(words) is not None


def is_http_url(url: str) -> bool:
    """Whether a program can connect to this address over HTTP."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def without_secrets(value: Any) -> Any:
    """An address with its user name, its password and secrets in its query replaced by HIDDEN.

    A value that is no text stays as it is.
    """
    return SECRET_VALUE.sub(rf"\1{HIDDEN}", USERINFO.sub(HIDDEN, value)) if isinstance(value, str) else value


def path_of(uri: str) -> Path:
    """The path in a file's URI. Raises ValueError for an invalid URI."""
    parts = urlsplit(uri)
    path = os.fsdecode(unquote_to_bytes(parts.path))  # a name need not be UTF-8
    if parts.netloc:
        return Path(f"//{parts.netloc}{path}")
    # file:///C:/notes.md: the slash before a drive letter is not part of a Windows path.
    return Path(path[1:] if len(path) > 2 and path[2] == ":" else path)


def path_in(uri: str) -> Path | None:
    """The path of a document that is a file; None for any other: a uri may be any text."""
    try:
        return path_of(uri) if uri.startswith("file://") else None
    except ValueError:
        return None
