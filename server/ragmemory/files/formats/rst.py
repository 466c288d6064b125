"""reStructuredText: headings become Markdown headings; all else, and the line numbers, stay the same."""

from __future__ import annotations

import re
from pathlib import Path

from ragcommon.files.decoding import decode
from ragmemory.files.formats.file_text import MAX_LEVEL, FileText, not_a_heading, one_line
from ragmemory.ingest.documents import MARKDOWN

# A line of one punctuation character, repeated.
ADORNMENT = re.compile(r"([!-/:-@[-`{-~])\1+$")
# What a title shows of a role: ":index:`Restore <pair: backup; restore>`".
ROLE = re.compile(r":[a-zA-Z][\w:+.-]*:`([^`<]+?)(?:\s*<[^`<>]*>)?`")


def read(path: Path, data: bytes) -> FileText:
    """The text with Markdown headings. Raises NotText."""
    decoded = decode(data)
    lines = decoded.text.split("\n")
    levels: list[str] = []  # adornments in order of first use, which defines the levels
    title = ""
    at = 0
    while at < len(lines):
        found = _heading(lines, at)
        if found is None:
            lines[at] = not_a_heading(lines[at])
            at += 1
            continue
        style, markup, count = found
        name = ROLE.sub(r"\1", markup)
        if style not in levels:
            levels.append(style)
        level = min(levels.index(style) + 1, MAX_LEVEL)
        # Keep the number of lines: citations refer to lines of the file.
        lines[at : at + count] = ["" if row != count - 2 else f"{'#' * level} {name}" for row in range(count)]
        title = title or name
        at += count
    return FileText("\n".join(lines), title or path.name, decoded.note, media_type=MARKDOWN)


def _heading(lines: list[str], at: int) -> tuple[str, str, int] | None:
    """The style, text and number of lines of the heading that begins here, if any.

    A title has equal adornments above and below; or it follows an empty line and is underlined in full.
    """
    above, *rest = lines[at : at + 3]
    if len(rest) == 2 and ADORNMENT.match(above.rstrip()) and rest[1].rstrip() == above.rstrip():
        if rest[0].strip() and not ADORNMENT.match(rest[0].rstrip()):
            return f"{above[0]} above", one_line(rest[0]), 3
        return None
    if not rest or not above.strip() or above[0].isspace() or (at and lines[at - 1].strip()):
        return None
    below = rest[0].rstrip()
    is_adorned = ADORNMENT.match(below) and not ADORNMENT.match(above.rstrip())
    return (below[0], one_line(above), 2) if is_adorned and len(below) >= len(above.rstrip()) else None
