"""Org: headings, listings, links and tables become those of Markdown; the line numbers stay the same."""

from __future__ import annotations

import re
from pathlib import Path

from ragcommon.files.decoding import decode
from ragmemory.files.formats.file_text import CODE_FENCE, MAX_LEVEL, FileText, not_a_heading, one_line
from ragmemory.ingest.documents import MARKDOWN

HEADING = re.compile(r"(\*+)[ \t]+(\S.*)")
TITLE = re.compile(r"#\+title:(.*)", re.IGNORECASE)
LISTING = re.compile(r"[ \t]*#\+(begin|end)_(?:src|example)\b[ \t]*([\w+-]*)", re.IGNORECASE)
# Settings without text, and the first and last line of a drawer of properties.
HIDDEN = re.compile(
    r"[ \t]*(?:#\+(?!caption|author|date|subtitle)\w+:|:(?:properties|logbook|end):[ \t]*$)", re.IGNORECASE
)
RULE = re.compile(r"[ \t]*\|[-+|]+\|?[ \t]*$")
LINK = re.compile(r"\[\[([^][]+)\](?:\[([^][]+)\])?\]")


def read(path: Path, data: bytes) -> FileText:
    """The text with Markdown's headings, fences, links and tables. Raises NotText."""
    decoded = decode(data)
    lines = decoded.text.split("\n")
    title, is_code = "", False
    for at, line in enumerate(lines):
        if listing := LISTING.match(line):
            is_code = listing[1].lower() == "begin"
            lines[at] = CODE_FENCE + (listing[2] if is_code else "")
        elif is_code:
            continue
        elif heading := HEADING.match(line):
            lines[at] = f"{'#' * min(len(heading[1]), MAX_LEVEL)} {one_line(_with_links(heading[2]))}"
        elif HIDDEN.match(line):
            title = title or one_line(found[1] if (found := TITLE.match(line)) else "")
            lines[at] = ""
        elif RULE.match(line):
            lines[at] = line.replace("+", "|")
        else:
            lines[at] = not_a_heading(_with_links(line))
    return FileText("\n".join(lines), title or path.name, decoded.note, media_type=MARKDOWN)


def _with_links(line: str) -> str:
    return LINK.sub(lambda link: f"[{link[2]}]({link[1]})" if link[2] else link[1], line)
