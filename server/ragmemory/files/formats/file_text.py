"""The result of reading a file, and what all formats share to build it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

from msgspec import Struct

from ragcommon.files.decoding import NoText, NotText
from ragcommon.text.places import Place
from ragmemory.files.formats.paragraphs import NamedPart, paragraph_places
from ragmemory.files.formats.unstyled import with_headings
from ragmemory.ingest.blocks import with_fences
from ragmemory.ingest.documents import MARKDOWN

# Characters of text per file: about 15,000 pages.
MAX_CHARACTERS = 32_000_000
# Control characters except white space, lone surrogates, and noncharacters; soft hyphens, word joiners and
# byte order marks, at which a word would end for the search.
UNWANTED = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\xad\u2060\ud800-\udfff\ufeff\ufffe\uffff]")
# Rows are padded to the width of the table unless that makes it this many times larger.
MAX_PADDED = 4
# Upper limit of the columns that one cell spans.
MAX_SPANNED = 100
# A longer cell is not repeated in each row that it spans.
MAX_REPEATED = 200
# Upper limit of the cells and characters that spans add to a table.
MAX_SPREAD = 250_000
# Stands for a footnote, or with an "e" for an endnote, as in Markdown.
NOTE = re.compile(r"\[\^e?\d+\]")
# The note on a file with comments.
COMMENTS = "has comments, which were not read"
# The note on a file with insertions and deletions that were neither accepted nor rejected.
CHANGES = "has tracked changes, which were read as if accepted"
BACKTICKS = re.compile("`+")
# Would be a heading in Markdown, unless it is indented; a backslash would be shown and quoted.
NUMBER_SIGN = re.compile(r"^ {0,3}(?=#{1,6}(?:\s|$))")
INDENTED = " " * 4
# A code block, with the second group if it is not closed; or the mark of a heading.
MARKUP = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|(\Z))|^(#{1,5}(?=[ \t]))", re.DOTALL | re.MULTILINE)
# Longer than those that code may have.
CODE_FENCE = "````"
# The lowest level of a heading in Markdown.
MAX_LEVEL = 6
# Names in a note; the others are only counted.
MAX_NAMED = 10
# Default titles that programs write: ReportLab, PowerPoint, LaTeX's hyperref, Word (with the file name), HTML
# editors; and names of files, such as those by dvips and layout programs.
NO_TITLE = re.compile(
    r"untitled( (document|page|presentation))?( ?\d+)?|unbenannt( ?\d+)?|\(anonymous\)|unspecified|no title"
    r"|powerpoint[ -]presentation|word document|microsoft (word|powerpoint|excel) - .*"
    r"|\S+\.(dvi|tex|e?ps|docx?|rtf|odt|pptx?|xlsx?|indd|qxd|p65|pmd)",
    re.IGNORECASE,
)
# Characters that are also written raised or lowered.
RAISED = str.maketrans("0123456789+-−–=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁼⁽⁾ⁿⁱ")
LOWERED = str.maketrans("0123456789+-−–=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₋₌₍₎")
# An exponent or index; not the end of a word (1st, 2e, Mme), a sign, small print or the mark of a note.
SHIFTED = re.compile(
    r"[^\W\d_aeodr]|[+−–-][^\s\[]{0,9}|[^\s\[]{0,9}\d[^\s\[]{0,9}|\d[\d\s.,;–-]*", re.IGNORECASE
)
LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# The text of a cell, and how many columns and rows it spans.
Cell: TypeAlias = tuple[str, int, int]


# Not taken from folders: old answers, and the expected ones of questions, would become sources; and keys.
PRIVATE_KEY = "a private key"
OWN_EXPORT, OWN_SCRIPT = "an exported conversation with ragchat", "a script of questions for ragchat"


class FileText(Struct, frozen=True):
    """The text of a file. `note` is for the user: it completes a sentence that begins with the path."""

    text: str
    title: str
    note: str = ""
    places: list[Place] = []  # pages, sheets, slides or messages, by line
    media_type: str = ""  # of the text; "": derived from the file extension
    has_unread_scans: bool = False  # because of a missing program
    tags: list[str] = []
    left_out: str = ""  # what it is, if it is not taken from folders: OWN_EXPORT, OWN_SCRIPT, PRIVATE_KEY


class Damaged(NotText):
    """A file violates its format."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"is a damaged {kind} file, or not one at all")


class MissingExtra(NotText):
    """The library for a format is not installed."""

    def __init__(self, extra: str) -> None:
        super().__init__(f"needs `pip install 'ragchat[{extra}]'`")


class TooMuchText(NotText):
    """A file holds more than MAX_CHARACTERS of text."""

    def __init__(self) -> None:
        super().__init__(f"holds more than {MAX_CHARACTERS:,} characters of text")


class TextBuilder:
    """Joins the parts of a text with empty lines, and records the places where they begin.

    `by_paragraph`: the text has no pages, so its paragraphs are the places.
    `notes`: footnotes and endnotes by their marks. They follow the line, or the table, with the mark.
    """

    def __init__(self, *, by_paragraph: bool = False, notes: dict[str, str] | None = None) -> None:
        self._by_paragraph = by_paragraph
        self._notes = notes or {}
        self._parts: list[str] = []
        self._bold = set[int]()
        self._continued = set[int]()
        self._places: list[NamedPart] = []
        self._line = 1
        self._characters = 0

    def add(
        self,
        text: str,
        place: str = "",
        *,
        counted: bool = False,
        is_bold: bool = False,
        continues: bool = False,
    ) -> None:
        """Append a part at `place`, by default that of the previous part. Raises TooMuchText.

        With `counted`, each paragraph is a place of its own, numbered below `place`. A part that is bold
        throughout may be a heading. One that continues the paragraph above has no empty line before it; only
        without `by_paragraph`, which may make a heading of a part.
        """
        text = clean(text).strip("\n")
        if not text.strip():
            return
        if self._notes and NOTE.search(text):
            text = "\n".join(self._with_notes(text.split("\n")))
        self._characters += len(text)
        if self._characters > MAX_CHARACTERS:
            raise TooMuchText
        if continues and self._parts:
            self._continued.add(len(self._parts))
            self._line -= 1
        if place or counted:
            self._places.append(NamedPart(self._line, place, counted))
        if is_bold:
            self._bold.add(len(self._parts))
        self._parts.append(text)
        self._line += text.count("\n") + 2

    def _with_notes(self, lines: Sequence[str]) -> Iterator[str]:
        below = []
        for line in lines:
            notes = [f"{mark}: {self._notes.pop(mark)}" for mark in NOTE.findall(line) if mark in self._notes]
            yield NOTE.sub("", line) if line.startswith("#") else line
            if line.startswith("|"):
                below += notes
            else:
                yield from notes
        yield from below

    def add_rows(self, rows: Sequence[Sequence[str]], places: Sequence[str] = ()) -> None:
        """Append a table; `places` has one label per row."""
        lines = table(rows)
        for number, place in enumerate(places):
            # The header is followed by its rule.
            self._places.append(NamedPart(self._line + number + (number > 0), place, counted=False))
        self.add("\n".join(lines))

    def add_file(self, found: FileText, place: str, fence: str | None = None) -> None:
        """Append an embedded file, with its places prefixed by `place`. Raises TooMuchText.

        With `fence`, the text is put into a code fence of that language, which may be "".
        """
        text = clean(found.text)
        above = self._line - 1 - (len(text) - len(text.lstrip("\n"))) + (fence is not None)
        self.add(text if fence is None else fenced(text, fence))
        for line, name in found.places:
            self._places.append(NamedPart(above + line, f"{place} {name}", counted=False))

    def build(self, title: str, note: str = "") -> FileText:
        """The finished text. Raises NoText, with the note as the reason, if there is none."""
        if not self._parts:
            raise NoText(note or "holds no text")
        parts = with_headings(self._parts, self._bold) if self._by_paragraph else self._parts
        spaced = ("\n" * (1 if place in self._continued else 2) + part for place, part in enumerate(parts))
        text = "".join(spaced).removeprefix("\n\n") + "\n"
        places = [(part.line, part.name) for part in self._places]
        if self._by_paragraph:
            places = paragraph_places(text, self._places)
        return FileText(text, one_line(NOTE.sub("", title)), note, places, MARKDOWN)


def stated_title(text: str) -> str:
    """The title in a file's metadata; "" for a default title."""
    return "" if NO_TITLE.fullmatch(title := one_line(text)) else title


def clean(text: str) -> str:
    """Normalize line ends to \\n, and remove control characters and lone surrogates."""
    return UNWANTED.sub("", LINE_ENDS.sub("\n", text))


def one_line(text: str) -> str:
    """The text with each run of white space collapsed to one space."""
    return " ".join(clean(text).split())


def not_a_heading(line: str) -> str:
    """A line of another format, indented if it would be a heading in Markdown."""
    return NUMBER_SIGN.sub(INDENTED, line)


def lowered(text: str) -> str:
    """Markdown for a section with a heading of its own: headings are one level lower, fences are closed."""
    return MARKUP.sub(lambda mark: f"#{mark[0]}" if mark[3] else mark[0], closed(text))


def closed(text: str) -> str:
    """Markdown with its last code fence closed: an open one would take in what is below."""
    if "```" not in text and "~~~" not in text:
        return text
    fence = deque(with_fences(clean(text)), maxlen=1)[0][1]
    return f"{text.rstrip()}\n{fence}" if fence else text


def shifted(text: str, *, is_raised: bool) -> str:
    """Raised or lowered text as characters that stay apart from those before it: 10⁶, CO₂, x_k, 2^{3k}."""
    bare = text.strip()
    if not SHIFTED.fullmatch(bare):
        return text
    known, sign = (RAISED, "^") if is_raised else (LOWERED, "_")
    if all(ord(char) in known for char in bare):
        return text.translate(known)
    return text.replace(bare, f"{sign}{bare}" if len(bare) == 1 else f"{sign}{{{bare}}}")


def script(part: str, *, is_raised: bool) -> str:
    """An exponent or index of a formula: "²", "_{max}"."""
    written = shifted(part, is_raised=is_raised)
    return written if written != part or not part else f"{'^' if is_raised else '_'}{{{part}}}"


def bracketed(part: str) -> str:
    """A part of a fraction."""
    return part if part.isalnum() else f"({part})"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table, whose first row is its header.

    The header is padded to the widest row. So are the other rows, unless one wide row among many would fill
    the table with empty cells.
    """
    width = max(map(len, rows), default=0)
    is_sparse = width * len(rows) > MAX_PADDED * sum(map(len, rows))
    lines = [
        _row(row if is_sparse and number else [*row, *[""] * (width - len(row))])
        for number, row in enumerate(rows)
    ]
    if lines:
        lines.insert(1, _row(["---"] * width))
    return lines


def spread(rows: Iterable[Iterable[Cell]]) -> list[list[str]]:
    """The rows with text. A cell that spans columns is given once; one that spans rows, in each of them."""
    found = []
    above = dict[int, tuple[str, int]]()  # by column: the text, and the row after the last that has it
    left = MAX_SPREAD
    for number, row in enumerate(rows):
        above = {at: cell for at, cell in above.items() if number < cell[1]} if left > 0 else {}
        shown = {at: text for at, (text, _) in above.items()}
        left -= len(shown) + sum(map(len, shown.values()))
        column, has_text = 0, False
        for text, columns, count in row:
            while column in shown:
                column += 1
            shown[column] = text
            has_text = has_text or bool(text)
            end = column + (min(columns, MAX_SPANNED) if left > 0 else 1)
            left -= end - column - 1
            if count > 1:
                repeated = text if len(text) <= MAX_REPEATED else ""
                above |= {at: (repeated if at == column else "", number + count) for at in range(column, end)}
            column = end
        if has_text:
            found.append([shown.get(at, "") for at in range(max(shown) + 1)])
    return found


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(one_line(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def listed(names: Sequence[str], rest: str) -> str:
    """The first MAX_NAMED names, and the number of the others, which are called `rest`."""
    count = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {count:,} more{rest}" if count > 0 else "")


def page_ranges(numbers: Sequence[int]) -> str:
    """ "p. 3–5, 9"."""
    ranges = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        run_numbers = [number for _, number in run]
        first, last = run_numbers[0], run_numbers[-1]
        ranges.append(f"{first}" if first == last else f"{first}–{last}")
    return f"p. {listed(ranges, ' ranges')}"


def fenced(code: str, language: str = "") -> str:
    """A code block whose fence does not occur in the code."""
    longest = max((len(run) for run in BACKTICKS.findall(code)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}{language}\n{code.strip(chr(10))}\n{fence}"
