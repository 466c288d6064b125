"""URIs of documents: what a user's word may mean, the path behind a URI, and its short form on the screen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from ragchat.sanitize import one_line

# Enough of a content hash to tell documents apart at a glance; commands take the whole URI or id.
_HASH_DIGITS = 12


def references(document: str) -> Sequence[str]:
    """What a user's word for a document may mean, likeliest first: an id or a URI, then a file's path."""
    try:
        path = Path(document).expanduser().resolve()
    except (OSError, RuntimeError, ValueError):  # an unknown user's home, a circle of links, a NUL
        return (document,)
    return (document, path.as_uri())


def path_of(uri: str) -> Path:
    """The path in a file's URI."""
    parts = urlsplit(uri)
    path = os.fsdecode(unquote_to_bytes(parts.path))  # a name need not be UTF-8
    if parts.netloc:
        return Path(f"//{parts.netloc}{path}")
    # file:///C:/notes.md: the slash before a drive letter is not part of a Windows path.
    return Path(path[1:] if len(path) > 2 and path[2] == ":" else path)


def short_uri(uri: str, title: str = "") -> str:
    """A file in the working folder by its relative path, in the home folder with ~; a hash by its title."""
    if uri.startswith("file://"):
        return one_line(short_path(path_of(uri)))
    if uri.startswith("sha256:"):
        return one_line(title) or uri[: len("sha256:") + _HASH_DIGITS]
    return one_line(uri)


def location(uri: str, start_line: int, end_line: int, title: str = "") -> str:
    """`notes/rag.md:12–18`."""
    lines = f"{start_line}" if start_line == end_line else f"{start_line}–{end_line}"
    return f"{short_uri(uri, title)}:{lines}"


def short_path(path: Path) -> str:
    """`path`, relative to the working folder if it is in it, with ~ if it is in the home folder."""
    for find, prefix in ((Path.cwd, ""), (Path.home, "~/")):
        with suppress(OSError, RuntimeError):  # a deleted working folder, a user without a home
            if path.is_relative_to(folder := find()):
                return prefix + path.relative_to(folder).as_posix()
    return str(path)
