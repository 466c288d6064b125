"""What reading a file gives, and the parts that all formats share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ragconfig.files.decoding import NotText
from ragconfig.places import Place

MARKDOWN = "text/markdown"
# Characters of text from one file: some 15,000 pages.
MOST_CHARACTERS = 32_000_000
# Control characters but white space, half characters, and the mark for "no character".
UNWANTED = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
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


class TextBuilder:
    """Collects the parts of a text, with an empty line between them, and the places where they begin."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._places: list[Place] = []
        self._line = 1
        self._characters = 0

    def add(self, text: str, place: str = "") -> None:
        """Append a part, which is in `place`, or in that of the part before it. Raises NotText if full."""
        text = clean(text).strip("\n")
        if not text.strip():
            return
        if place:
            self._places.append((self._line, place))
        self._parts.append(text)
        self._line += text.count("\n") + 2
        self._characters += len(text)
        if self._characters > MOST_CHARACTERS:
            raise NotText(f"holds more than {MOST_CHARACTERS:,} characters of text")

    def add_rows(self, rows: Sequence[Sequence[str]], places: Sequence[str] = ()) -> None:
        """Append a table; `places` are those of its rows."""
        lines = table(rows)
        for number, place in enumerate(places):
            # The rule below the header is a line, too.
            self._places.append((self._line + number + (number > 0), place))
        self.add("\n".join(lines))

    def read(self, title: str, note: str = "") -> Read:
        """The text; without one, NotText is raised with the note as the reason."""
        if not self._parts:
            raise NotText(note or "holds no text")
        return Read("\n\n".join(self._parts) + "\n", one_line(title), note, self._places, MARKDOWN)


def clean(text: str) -> str:
    """The text with \\n at line ends, without control characters and half characters."""
    return UNWANTED.sub("", LINE_ENDS.sub("\n", text))


def one_line(text: str) -> str:
    """The text with a space for each run of white space."""
    return " ".join(clean(text).split())


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table, whose first row is its header."""
    width = max(map(len, rows), default=0)
    lines = [_row([*row, *[""] * (width - len(row))]) for row in rows]
    if lines:
        lines.insert(1, _row(["---"] * width))
    return lines


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(one_line(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def fenced(code: str, language: str = "") -> str:
    """A block of code, between fences that it does not contain."""
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code.strip(chr(10))}\n{fence}"
