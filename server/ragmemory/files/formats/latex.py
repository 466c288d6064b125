"""LaTeX: headings and listings become those of Markdown, without comments; the line numbers stay."""

from __future__ import annotations

import re
from pathlib import Path

from ragcommon.files.decoding import decode
from ragmemory.files.formats.file_text import CODE_FENCE, FileText, not_a_heading, one_line
from ragmemory.ingest.documents import MARKDOWN

LEVELS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph")
HEADING = re.compile(rf"[ \t]*\\({'|'.join(LEVELS)})\*?(?:\[[^]]*\])?\{{((?:[^{{}}]|\{{[^{{}}]*\}})*)\}}")
TITLE = re.compile(r"[ \t]*\\title(?:\[[^]]*\])?\{(.*)\}")
ABSTRACT = re.compile(r"[ \t]*\\begin\{abstract\}[ \t]*$")
LISTING = re.compile(r"[ \t]*\\(begin|end)\{(?:[vV]erbatim\*?|lstlisting|minted)\}")
COMMENT = re.compile(r"(?<!\\)%.*")
# Commands without text, alone in their line.
SILENT = "begin end label documentclass usepackage maketitle tableofcontents centering newpage clearpage"
HIDDEN = re.compile(rf"[ \t]*(?:\\(?:{'|'.join(SILENT.split())})(?:\[[^]]*\]|\{{[^{{}}]*\}})*[ \t]*)*$")
# A character, a command of which the argument is shown, a line break, a brace, a space that is not broken.
COMMAND = re.compile(r"\\([&%$#_{}])|\\(?:[a-zA-Z]+\*?[ \t]*|\\)|[{}~]")


def read(path: Path, data: bytes) -> FileText:
    """The text with Markdown's headings and fences. Raises NotText."""
    decoded = decode(data)
    lines = decoded.text.split("\n")
    stated = first = ""
    is_code = False
    for at, line in enumerate(lines):
        if listing := LISTING.match(line):
            is_code = listing[1] == "begin"
            lines[at] = CODE_FENCE
        elif is_code:
            continue
        elif ABSTRACT.match(line):
            lines[at] = f"{'#' * (LEVELS.index('section') + 1)} Abstract"
        elif (heading := HEADING.match(line)) and HIDDEN.match(COMMENT.sub("", line[heading.end() :])):
            name = _shown(heading[2])
            lines[at] = f"{'#' * (LEVELS.index(heading[1]) + 1)} {name}"
            first = first or name
        else:
            stated = stated or _shown(title[1] if (title := TITLE.match(line)) else "")
            text = COMMENT.sub("", line).rstrip()
            lines[at] = "" if HIDDEN.match(text) else not_a_heading(text)
    return FileText("\n".join(lines), stated or first or path.name, decoded.note, media_type=MARKDOWN)


def _shown(text: str) -> str:
    """A text without the commands of LaTeX."""
    return one_line(COMMAND.sub(lambda found: found[1] or (" " if found[0] in ("~", "\\\\") else ""), text))
