"""Plain text, Markdown and source code, unchanged."""

from __future__ import annotations

import re
from pathlib import Path

from ragcommon.files.decoding import decode
from ragcommon.text.rules import atx_heading
from ragmemory.files.formats.file_text import FileText

MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
MAYBE_HEADING = re.compile(r"^ {0,3}#.*", re.MULTILINE)


def read(path: Path, data: bytes) -> FileText:
    """The text of a file. Raises NotText, EmptyText."""
    text, encoding, is_guessed = decode(data)
    note = f"is not UTF-8; it was read as {encoding}" if is_guessed else ""
    return FileText(text, title_of(path, text), note)


def title_of(path: Path, text: str) -> str:
    """A Markdown document's first heading, else the file's name."""
    if path.suffix.lower() in MARKDOWN:
        for line in MAYBE_HEADING.finditer(text):
            _, title = atx_heading(line[0]) or (0, "")
            if title:
                return title
    return path.name
