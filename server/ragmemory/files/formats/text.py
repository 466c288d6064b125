"""Plain text, Markdown and source code, unchanged but for the data of images in Markdown."""

from __future__ import annotations

import re
from pathlib import Path

from ragcommon.files.decoding import decode
from ragcommon.text.rules import atx_heading
from ragmemory.files.formats.file_text import FileText
from ragmemory.ingest.documents import is_markdown
from ragmemory.ingest.headings import has_markdown

MARKDOWN_NAMES = frozenset({".md", ".markdown", ".mdown", ".mkd"})
# Comments, and the first macro of a manual page: "." or "'" begins a line of roff.
ROFF = re.compile(r"(?:[.'](?:\\\"|[ \t]*\n|\\).*\n?|[ \t]*\n)*\.(?:TH|Dd)[ \t]+\S")
IMAGE_DATA = re.compile(r"(\bdata:image/[\w.+-]+)(?:;[\w.=-]+)*;base64,[\w+/=%-]+", re.ASCII)
MAYBE_HEADING = re.compile(r"^ {0,3}#.*", re.MULTILINE)


def read(path: Path, data: bytes) -> FileText:
    """The text of a file. Raises NotText, EmptyText."""
    decoded = decode(data)
    text, notes = decoded.text, [decoded.note]
    if is_markdown(path.name):
        text = IMAGE_DATA.sub(r"\1", text)
    if ROFF.match(text):
        notes.append("is the source of a manual page, with its markup: load what `man` shows instead")
    # A name says nothing about the text of a file without a known extension.
    is_plain = is_markdown(path.name) and path.suffix.lower() not in MARKDOWN_NAMES and not has_markdown(text)
    note = "; ".join(filter(None, notes))
    return FileText(text, title_of(path, text), note, media_type="text/plain" if is_plain else "")


def title_of(path: Path, text: str) -> str:
    """A Markdown document's first heading, else the file's name."""
    if path.suffix.lower() in MARKDOWN_NAMES:
        for line in MAYBE_HEADING.finditer(text):
            _, title = atx_heading(line[0]) or (0, "")
            if title:
                return title
    return path.name
