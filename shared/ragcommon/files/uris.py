"""The path in a file's URI. Both programs read it."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit


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
