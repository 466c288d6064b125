"""Reading a file: its text, or the parser that finds it."""

from __future__ import annotations

import time
from pathlib import Path

from ragcommon.files.decoding import MAX_FILE_BYTES
from ragcommon.files.folder import Folder
from ragcommon.files.safe_open import read_in, read_regular
from ragmemory.files.formats import text
from ragmemory.files.formats.detection import TEXT, Parser, module_of, parser_for
from ragmemory.files.formats.file_text import FileText

# Counted up when files of any format are read differently: then unchanged files are read again.
READER_VERSION = 7
# A file that changed less than this before it was read may change again without another time of change.
RACY_SECONDS = 2.0


def read_file(path: Path, folder: Folder | None = None) -> FileText | Parser:
    """The text of a file, or the parser that finds it; `path` is resolved, and `folder` may be open.

    Raises NotText, EmptyText, OSError.
    """
    if parser := parser_for(path):
        return parser
    if folder:
        data = read_in(folder, path.name, MAX_FILE_BYTES)
    else:
        data = read_regular(path, MAX_FILE_BYTES, links=False)
    module = module_of(path, data)
    return text.read(path, data) if module == TEXT else Parser(module)


def stamp_of(size: int, changed_ns: int) -> str:
    """What identifies the state of a file, so that an unchanged one need not be read.

    "" for a file that has just changed: it may change again within the resolution of its time.
    """
    if time.time() - changed_ns / 1e9 < RACY_SECONDS:
        return ""
    return f"{READER_VERSION}:{size}:{changed_ns}"


def with_depth(stamp: str, root: Path) -> str:
    """A stamp as it is stored, with the depth of the folder, or file, through which the file was found."""
    return f"{stamp}@{len(root.parts)}"


def without_depth(stamp: str) -> str:
    """The stamp of a stored one."""
    return stamp.partition("@")[0]


def is_found_from(stamp: str, folder: Path) -> bool:
    """Whether a file with this stored stamp was last found through `folder`, or through one above it.

    It was not if the user has named it, or a folder in `folder`; or if it was stored without a file.
    """
    depth = stamp.partition("@")[2]
    return depth.isdecimal() and int(depth) <= len(folder.parts)
