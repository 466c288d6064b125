"""Reading a file: its text and title, or why it has none."""

from __future__ import annotations

import re
import time
from pathlib import Path

from ragconfig.files.decoding import LARGEST_BYTES, decode
from ragconfig.files.regular import read_regular
from ragconfig.text_rules import atx_heading
from ragmemory.files.formats.read import Read
from ragmemory.files.formats.reader import Parser, parser_for, parser_of_text

# Counted up when files of any format are read differently: then unchanged files are read again.
READER_VERSION = 3
# A file that changed less than this before it was read may change again without another time of change.
RACY_SECONDS = 2.0

MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
MAYBE_HEADING = re.compile(r"^ {0,3}#.*", re.MULTILINE)


def read_file(path: Path) -> Read | Parser:
    """The text in a file, or the parser that finds it. Raises NotText, EmptyText, OSError."""
    if parser := parser_for(path):
        return parser
    text, encoding, is_guessed = decode(read_regular(path, LARGEST_BYTES))
    if parser := parser_of_text(path, text):
        return parser
    note = f"is not UTF-8; it was read as {encoding}" if is_guessed else ""
    return Read(text, title_of(path, text), note)


def stamp_of(size: int, changed_ns: int) -> str:
    """What identifies the state of a file, so that an unchanged one need not be read.

    "" for a file that has just changed: it may change again within the resolution of its time.
    """
    if time.time() - changed_ns / 1e9 < RACY_SECONDS:
        return ""
    return f"{READER_VERSION}:{size}:{changed_ns}"


def title_of(path: Path, text: str) -> str:
    """A Markdown document's first heading, else the file's name."""
    if path.suffix.lower() in MARKDOWN:
        for line in MAYBE_HEADING.finditer(text):
            _, title = atx_heading(line[0]) or (0, "")
            if title:
                return title
    return path.name
