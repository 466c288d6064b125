"""The highlights and notes of a Kindle ("My Clippings.txt"), in Markdown by book."""

from __future__ import annotations

import re
from pathlib import Path

from ragcommon.files.decoding import decode
from ragmemory.files.formats.file_text import FileText, TextBuilder, not_a_heading, one_line

SEPARATOR = "\n==========\n"
# The book, then where the text is in it and when it was marked, in the language of the device.
CLIPPINGS = re.compile(
    rb"(?:\xef\xbb\xbf)?[^\r\n]+\r?\n- [^\r\n]*\|[^\r\n]*\r?\n\r?\n(?:[^\r\n]*\r?\n)+?==========\r?\n"
)


def read(path: Path, data: bytes) -> FileText:
    """Each highlight and note below the title of its book; bookmarks have no text. Raises NotText."""
    decoded = decode(data)
    books: dict[str, list[tuple[int, str]]] = {}
    for number, entry in enumerate(decoded.text.split(SEPARATOR), 1):
        book, _, rest = entry.strip("\ufeff\n").partition("\n")
        place, _, text = rest.partition("\n")
        if text.strip():
            lines = [*map(not_a_heading, text.strip().split("\n")), place.removeprefix("- ")]
            books.setdefault(one_line(book), []).append((number, "\n\n".join(lines)))
    builder = TextBuilder()
    for book, clips in books.items():
        builder.add(f"# {book}", f"record {clips[0][0]}")
        for number, clip in clips:
            builder.add(clip, f"record {number}")
    return builder.build(path.name, decoded.note)
