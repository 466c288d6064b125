"""Read a file: its text, or the module of the parser to run for it."""

from __future__ import annotations

import time
from pathlib import Path

from ragcommon.files.decoding import MAX_FILE_BYTES
from ragcommon.files.folder import Folder
from ragcommon.files.safe_open import read_in, read_regular
from ragmemory.files.formats import text
from ragmemory.files.formats.detection import TEXT, module_for, module_of
from ragmemory.files.formats.file_text import FileText

# Incremented when a format is read differently, so that unchanged files are read again.
READER_VERSION = 35
# Ends the stamp of a file with scanned pages that were not read, as a program was missing.
UNREAD_SCANS = ":scans"
# A file modified less than this before it was read may change again without a new modification time.
RACY_SECONDS = 2.0


def read_file(path: Path, folder: Folder | None = None) -> FileText | str:
    """The text of a file, or the module that is to parse it. `path` is resolved; `folder` is its folder.

    Raises NotText, EmptyText, OSError.
    """
    if (module := module_for(path)) != TEXT:
        return module
    if folder:
        data = read_in(folder, path.name, MAX_FILE_BYTES)
    else:
        data = read_regular(path, MAX_FILE_BYTES, links=False)
    module = module_of(path, data)
    return text.read(path, data) if module == TEXT else module


def stamp_of(size: int, changed_ns: int) -> str:
    """Identifies the state of a file, so that an unchanged one need not be read.

    "" for a file that has just changed: it may change again within the resolution of its timestamp.
    """
    if time.time() - changed_ns / 1e9 < RACY_SECONDS:
        return ""
    return f"{READER_VERSION}:{size}:{changed_ns}"


def with_depth(stamp: str, root: Path) -> str:
    """A stamp as stored: with the depth of the path that the user named to reach the file.

    It begins with the version of the reader, also for a file that had just changed.
    """
    return f"{stamp or f'{READER_VERSION}:'}@{len(root.parts)}"


def is_current(stored: str, file: str, *, can_read_scans: bool) -> bool:
    """Whether a file with the stamp `file` is as it was when its stored stamp was made.

    Not if it has scanned pages that can be read only now.
    """
    stamp = without_depth(stored)
    return bool(file) and (stamp == file or (stamp == file + UNREAD_SCANS and not can_read_scans))


def without_depth(stamp: str) -> str:
    """The stamp within a stored stamp."""
    return stamp.partition("@")[0]


def is_found_from(stamp: str, folder: Path) -> bool:
    """Whether a file with this stored stamp was last found by walking `folder`, or a folder above it.

    False if the user named the file itself or a folder inside `folder`, or if the document has no file.
    """
    depth = stamp.partition("@")[2]
    return depth.isdecimal() and int(depth) <= len(folder.parts)
