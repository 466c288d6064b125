"""How a document's place is written: short where it can be, never ambiguous."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ragchat.ingest.files import path_of
from ragchat.sanitize import one_line

# Enough of a content hash to tell documents apart at a glance; /forget and friends take the whole URI or id.
_HASH_DIGITS = 12


def short_uri(uri: str, title: str = "") -> str:
    """A file below the working folder as a relative path, below home with ~; a bare hash by its title."""
    if uri.startswith("file://"):
        return one_line(_short_path(path_of(uri)))
    if uri.startswith("sha256:"):
        return one_line(title) or uri[: len("sha256:") + _HASH_DIGITS]
    return one_line(uri)


def place(uri: str, start_line: int, end_line: int, title: str = "") -> str:
    """`notes/rag.md:12–18`."""
    lines = f"{start_line}" if start_line == end_line else f"{start_line}–{end_line}"
    return f"{short_uri(uri, title)}:{lines}"


def _short_path(path: Path) -> str:
    for find, prefix in ((Path.cwd, ""), (Path.home, "~/")):
        with suppress(OSError, RuntimeError):  # a working folder that was deleted, a user without a home
            if path.is_relative_to(folder := find()):
                return prefix + path.relative_to(folder).as_posix()
    return str(path)
