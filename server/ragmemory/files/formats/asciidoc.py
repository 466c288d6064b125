"""AsciiDoc: headings and listings become those of Markdown; the line numbers stay the same."""

from __future__ import annotations

import re
from pathlib import Path

from ragcommon.files.decoding import decode
from ragmemory.files.formats.file_text import CODE_FENCE, FileText, not_a_heading, one_line
from ragmemory.ingest.documents import MARKDOWN

HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)")
# A title may be underlined instead, to within a character of its length; the characters by level.
TITLE = re.compile(r"(?=.*[^\W_])[^\s\[.|].*")
UNDERLINE = re.compile(r"([=~^+-])\1+$")
UNDERLINES = "=-~^+"
# The first and last line of a listing or a comment.
LISTING = re.compile(r"-{4,}$|\.{4,}$|/{4,}$")
# An anchor; the first and last line of an example, a sidebar or a quotation.
HIDDEN = re.compile(r"\[(?:\[[^]]+\]|#[^]]+)\]$|={4,}$|\*{4,}$|_{4,}$|\+{4,}$")


def read(path: Path, data: bytes) -> FileText:
    """The text with Markdown's headings and fences. Raises NotText."""
    decoded = decode(data)
    lines = [line.rstrip() for line in decoded.text.split("\n")]
    listing = title = ""
    for at, line in enumerate(lines):
        if listing or LISTING.match(line):
            is_edge, is_comment = listing in ("", line), (listing or line)[0] == "/"
            if is_edge or is_comment:
                lines[at] = "" if is_comment else CODE_FENCE
            if is_edge:
                listing = "" if listing else line
        elif found := _heading(lines, at):
            level, name = found
            lines[at] = f"{'#' * level} {name}"
            title = title or name
        else:
            lines[at] = "" if HIDDEN.match(line) else not_a_heading(line)
    return FileText("\n".join(lines), title or path.name, decoded.note, media_type=MARKDOWN)


def _heading(lines: list[str], at: int) -> tuple[int, str] | None:
    """The level and text of the heading in a line; its underline is removed."""
    line, below, *_ = *lines[at : at + 2], ""
    if found := HEADING.match(line):
        return len(found[1]), one_line(found[2].removesuffix(found[1]))
    rule = UNDERLINE.match(below)
    is_first = not at or not lines[at - 1]
    if rule is None or not is_first or not TITLE.match(line) or abs(len(below) - len(line)) > 1:
        return None
    lines[at + 1] = ""
    return UNDERLINES.index(rule[1]) + 1, one_line(line)
