"""What reading a file gives, and the parts that all formats share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ragcommon.files.decoding import NoText, NotText
from ragcommon.text.places import Place
from ragmemory.files.formats.paragraphs import Part, paragraph_places

MARKDOWN = "text/markdown"
# Characters of text from one file: some 15,000 pages.
MOST_CHARACTERS = 32_000_000
# Control characters but white space, half characters, and the mark for "no character".
UNWANTED = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
# Cells of a table for each that is in its rows: more of them are not written when they are empty.
MOST_PADDED = 4
BACKTICKS = re.compile("`+")
# Titles that programs state for documents that were given none: ReportLab, PowerPoint, LaTeX's hyperref, Word
# (with the name of the file) and editors of HTML.
NO_TITLE = re.compile(
    r"untitled( (document|page|presentation))?( ?\d+)?|unbenannt( ?\d+)?|\(anonymous\)|unspecified|no title"
    r"|powerpoint[ -]presentation|microsoft (word|powerpoint|excel) - .*",
    re.IGNORECASE,
)
LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")


class Read(Struct, frozen=True):
    """A file that was read. `note` is for the user: the end of a sentence that begins with the path."""

    text: str
    title: str
    note: str = ""
    places: list[Place] = []  # pages, sheets, slides, messages, in the order of their lines
    media_type: str = ""  # of the text; "": by the file's extension


class Damaged(NotText):
    """A file that is not as its format prescribes."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"is a damaged {kind} file, or not one at all")


class MissingExtra(NotText):
    """The library for a format is not installed."""

    def __init__(self, extra: str) -> None:
        super().__init__(f"needs `pip install 'ragchat[{extra}]'`")


class TooMuchText(NotText):
    """A file holds more text than is read from one."""

    def __init__(self) -> None:
        super().__init__(f"holds more than {MOST_CHARACTERS:,} characters of text")


class TextBuilder:
    """Collects the parts of a text, with an empty line between them, and the places where they begin.

    Those of a text without pages are its paragraphs, `by_paragraph`.
    """

    def __init__(self, *, by_paragraph: bool = False) -> None:
        self._by_paragraph = by_paragraph
        self._parts: list[str] = []
        self._places: list[Part] = []
        self._line = 1
        self._characters = 0

    def add(self, text: str, place: str = "", *, counted: bool = False) -> None:
        """Append a part, which is in `place`, or in that of the part before it. Raises TooMuchText.

        With `counted` its paragraphs are places, named after `place`.
        """
        text = clean(text).strip("\n")
        if not text.strip():
            return
        self._characters += len(text)
        if self._characters > MOST_CHARACTERS:
            raise TooMuchText
        if place or counted:
            self._places.append(Part(self._line, place, counted))
        self._parts.append(text)
        self._line += text.count("\n") + 2

    def add_rows(self, rows: Sequence[Sequence[str]], places: Sequence[str] = ()) -> None:
        """Append a table; `places` are those of its rows."""
        lines = table(rows)
        for number, place in enumerate(places):
            # The rule below the header is a line, too.
            self._places.append(Part(self._line + number + (number > 0), place, counted=False))
        self.add("\n".join(lines))

    def add_read(self, found: Read, place: str, fence: str | None = None) -> None:
        """Append the text of a file within this one, with its places after `place`. Raises TooMuchText.

        With `fence`, which may be empty, it is code in that language.
        """
        text = clean(found.text)
        above = self._line - 1 - (len(text) - len(text.lstrip("\n"))) + (fence is not None)
        self.add(text if fence is None else fenced(text, fence))
        for line, name in found.places:
            self._places.append(Part(above + line, f"{place} {name}", counted=False))

    def read(self, title: str, note: str = "") -> Read:
        """The text; without one, NoText is raised with the note as the reason."""
        if not self._parts:
            raise NoText(note or "holds no text")
        text = "\n\n".join(self._parts) + "\n"
        places = [(part.line, part.name) for part in self._places]
        if self._by_paragraph:
            places = paragraph_places(text, self._places)
        return Read(text, one_line(title), note, places, MARKDOWN)


def stated_title(text: str) -> str:
    """The title that a file states; "" for what programs write for want of one."""
    return "" if NO_TITLE.fullmatch(title := one_line(text)) else title


def clean(text: str) -> str:
    """The text with \\n at line ends, without control characters and half characters."""
    return UNWANTED.sub("", LINE_ENDS.sub("\n", text))


def one_line(text: str) -> str:
    """The text with a space for each run of white space."""
    return " ".join(clean(text).split())


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table, whose first row is its header.

    The header is as wide as the widest row. So are the other rows, unless most of their cells would be empty:
    one wide row among many would make all of them wide.
    """
    width = max(map(len, rows), default=0)
    is_sparse = width * len(rows) > MOST_PADDED * sum(map(len, rows))
    lines = [
        _row(row if is_sparse and number else [*row, *[""] * (width - len(row))])
        for number, row in enumerate(rows)
    ]
    if lines:
        lines.insert(1, _row(["---"] * width))
    return lines


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(one_line(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def fenced(code: str, language: str = "") -> str:
    """A block of code, between fences that it does not contain."""
    longest = max((len(run) for run in BACKTICKS.findall(code)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}{language}\n{code.strip(chr(10))}\n{fence}"
