"""The highlights and notes of a Kindle ("My Clippings.txt"), in Markdown by book."""

from __future__ import annotations

import re
from pathlib import Path

from ragcommon.files.decoding import decode
from ragmemory.files.formats.file_text import FileText, TextBuilder, closed, not_a_heading, one_line

# The book, then where the text is in it and when it was marked, in the language of the device.
CLIPPINGS = re.compile(
    rb"(?:\xef\xbb\xbf)?[^\r\n]+\r?\n- [^\r\n|]*+\|[^\r\n]*+\r?\n\r?\n"
    rb"(?:[^\r\n]*+\r?\n)+?==========(?:\r?\n|\Z)"
)
_ENTRY = re.compile(r"\ufeff?(.+)\n- (.*\|.*)(?:\n|\Z)")
_SEPARATOR = re.compile(r"^={10}(?:\n|\Z)", re.MULTILINE)


def read(path: Path, data: bytes) -> FileText:
    """Each highlight and note below the title of its book; bookmarks have no text. Raises NotText."""
    decoded = decode(data)
    books: dict[str, list[tuple[int, str]]] = {}
    for number, entry in enumerate(_SEPARATOR.split(decoded.text), 1):
        found = _ENTRY.match(entry)
        text = entry[found.end() :] if found else entry
        if text.strip():
            book, where = (one_line(found[1]), [found[2]]) if found else ("", [])
            clip = closed("\n".join(map(not_a_heading, text.strip().split("\n"))))
            books.setdefault(book, []).append((number, "\n\n".join([clip, *where])))
    builder = TextBuilder()
    for book, clips in books.items():
        if book:
            builder.add(f"# {book}", f"record {clips[0][0]}")
        for number, clip in clips:
            builder.add(clip, f"record {number}")
    return builder.build(path.name, decoded.note)
