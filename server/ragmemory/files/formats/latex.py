"""LaTeX: headings and listings become those of Markdown, without comments; the line numbers stay."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from ragcommon.files.decoding import decode
from ragmemory.files.formats.bibtex import accented
from ragmemory.files.formats.file_text import CODE_FENCE, FileText, not_a_heading, one_line
from ragmemory.ingest.documents import MARKDOWN

LEVELS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph")
# The title of a slide is as deep as a subsubsection.
SLIDE = "#" * (LEVELS.index("subsubsection") + 1)
BRACED = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"
HEADING = re.compile(rf"[ \t]*\\({'|'.join(LEVELS)}|frametitle)\*?(?:\[[^]]*\])?{BRACED}")
FRAME = re.compile(rf"[ \t]*\\begin\{{frame\}}(?:<[^>]*>)?(?:\[[^]]*\])?{BRACED}")
TITLE = re.compile(rf"^[ \t]*\\title(?:\[[^][\n]*\])?{BRACED}", re.MULTILINE)
THANKS = re.compile(rf"\\thanks{BRACED}")
ABSTRACT = re.compile(r"[ \t]*\\begin\{abstract\}[ \t]*$")
LISTING = re.compile(r"[ \t]*\\(begin|end)\{(?:[vV]erbatim\*?|lstlisting|minted)\}")
COMMENT = re.compile(r"(?<!\\)%.*")
# Commands without text, alone in their line.
SILENT = "begin end label documentclass usepackage maketitle tableofcontents centering newpage clearpage"
HIDDEN = re.compile(rf"[ \t]*(?:\\(?:{'|'.join(SILENT.split())})(?:\[[^]]*\]|\{{[^{{}}]*\}})*[ \t]*)*$")
# A theorem with its name, in distinction from a table with its place: "[ht]", "[label=a)]", "[fragile]".
NAMED = re.compile(
    r"[ \t]*\\begin\{(?!(?:figure|table|tikz\w*|itemize|enumerate|description|frame|algorithm\w*)\b)"
    r"([^\W\d_]+)\*?\}\[(?=[^=\]]*\]|[^=\]]*\{)((?:[^][{}]|\{[^{}]*\})*)\]"
)
NAME = re.compile(r"[^\W\d_a-z]\w|\w\w \w")
THEOREM = re.compile(r"\\(?:newtheorem|declaretheorem)\*?\{([^\W\d_]+)\}(?:\[[^][\n]*\])?\{([^{}\\]+)\}")
UNNAMED = re.compile(r"[ \t]*\\begin\{([^\W\d_]+)\*?\}")
# A character, a command of which the argument is shown, a line break, a brace, a space that is not broken.
COMMAND = re.compile(r"\\([&%$#_{}])|\\(?:[a-zA-Z]+\*?[ \t]*|\\)|[{}~]")
# A command that a letter behind it would lengthen.
OPEN_COMMAND = re.compile(r"\\[a-zA-Z]+\Z")
MAX_COMMAND = 40
# Commands of the author that stand for a text: \newcommand{\tool}{Kite\xspace}, \def\tool{Kite}.
DEFINED = re.compile(
    r"^[ \t]*\\(?:(?:re)?newcommand\*?\{?|def)\\([a-zA-Z]+)\}?"
    r"\{((?:[\w .,:;'()/+~-]|\\(?:text\w\w|emph)\{[\w .+~-]*\})*)(?:\\xspace)?\}",
    re.MULTILINE,
)


def read(path: Path, data: bytes) -> FileText:
    """The text with Markdown's headings and fences. Raises NotText."""
    decoded = decode(data)
    lines = decoded.text.split("\n")
    plain = "\n".join(COMMENT.sub("", line) for line in lines)
    kinds, defined = dict(THEOREM.findall(plain)), _defined(plain)

    def written(text: str) -> str:
        return accented(defined(text)) if "\\" in text else text

    title = TITLE.search(plain)
    stated = _shown(written(THANKS.sub("", title[1]))) if title else ""
    first = ""
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
            name = _shown(written(heading[2]))
            level = SLIDE if heading[1] == "frametitle" else "#" * (LEVELS.index(heading[1]) + 1)
            lines[at] = f"{level} {name}"
            first = first or name
        elif (
            (frame := FRAME.match(line))
            and (name := _shown(written(frame[1])))
            and HIDDEN.match(COMMENT.sub("", line[frame.end() :]))
        ):
            lines[at] = f"{SLIDE} {name}"
        else:
            text = COMMENT.sub("", line).rstrip()
            text = _theorem(text, kinds) if HIDDEN.match(text) else text
            lines[at] = not_a_heading(text if DEFINED.match(text) else written(text))
    return FileText("\n".join(lines), stated or first or path.name, decoded.note, media_type=MARKDOWN)


def _theorem(line: str, kinds: Mapping[str, str]) -> str:
    """What is printed of a line that begins a theorem: "Lemma (of the kite)"; nothing of other commands."""
    if named := NAMED.match(line):
        name, kind = _shown(accented(named[2])), kinds.get(named[1]) or named[1].capitalize()
        if named[1] in kinds or NAME.search(name):
            return name if name.startswith(kind) else f"{kind} ({name})"  # "Proof of Lemma 2"
    unnamed = UNNAMED.match(line)
    return kinds.get(unnamed[1], "") if unnamed else ""


def _defined(text: str) -> Callable[[str], str]:
    """Write commands that the author has defined as names or words."""
    texts = {name: shown for name, body in DEFINED.findall(text) if (shown := _shown(body))}
    if not texts:
        return lambda line: line
    used = re.compile(rf"\\({'|'.join(texts)})(?![a-zA-Z])(?:\{{\}}|\\(?= ))?")

    def text_of(found: re.Match[str]) -> str:
        before = found.string[max(0, found.start() - MAX_COMMAND) : found.start()]
        return (
            f"{' ' * (OPEN_COMMAND.search(before) is not None)}{texts[found[1]]}"  # "\\in\\R" is not "\\inR".
        )

    return lambda line: used.sub(text_of, line)


def _shown(text: str) -> str:
    """A text without the commands of LaTeX."""
    return one_line(COMMAND.sub(lambda found: found[1] or (" " if found[0] in ("~", "\\\\") else ""), text))
