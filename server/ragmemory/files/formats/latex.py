"""LaTeX: headings and listings become those of Markdown; all else, and the line numbers, stay the same."""

from __future__ import annotations

import re
from pathlib import Path

from ragcommon.files.decoding import decode
from ragmemory.files.formats.file_text import FENCE, FileText, not_a_heading, one_line
from ragmemory.ingest.documents import MARKDOWN

LEVELS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph")
HEADING = re.compile(rf"[ \t]*\\({'|'.join(LEVELS)})\*?(?:\[[^]]*\])?\{{(.*?)\}}[ \t]*(?=$|[\\%])")
TITLE = re.compile(r"[ \t]*\\title(?:\[[^]]*\])?\{(.*)\}")
LISTING = re.compile(r"[ \t]*\\(begin|end)\{(?:verbatim|lstlisting|minted)\}")
# A command, of which the argument is shown; a brace; a space that is not broken.
COMMAND = re.compile(r"\\(?:[a-zA-Z]+\*?[ \t]*|\\)|[{}~]")


def read(path: Path, data: bytes) -> FileText:
    """The text with Markdown's headings and fences. Raises NotText."""
    decoded = decode(data)
    lines = decoded.text.split("\n")
    stated = first = ""
    is_code = False
    for at, line in enumerate(lines):
        if listing := LISTING.match(line):
            is_code = listing[1] == "begin"
            lines[at] = FENCE
        elif is_code:
            continue
        elif heading := HEADING.match(line):
            name = _shown(heading[2])
            lines[at] = f"{'#' * (LEVELS.index(heading[1]) + 1)} {name}"
            first = first or name
        else:
            stated = stated or _shown(title[1] if (title := TITLE.match(line)) else "")
            lines[at] = not_a_heading(line)
    return FileText("\n".join(lines), stated or first or path.name, decoded.note, media_type=MARKDOWN)


def _shown(text: str) -> str:
    """A text without the commands of LaTeX."""
    return one_line(COMMAND.sub(lambda found: " " if found[0] in ("~", "\\\\") else "", text))
