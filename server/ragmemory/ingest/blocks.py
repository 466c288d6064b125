"""Split a text into blocks, which chunking avoids cutting. Pure; the blocks concatenate to the text.

Not a Markdown parser: it recognises headings, fences, tables, list items, quotes and blank lines line by
line. `ragmemory.blocks` builds the tree of a document from these blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from ragcommon.text.columns import NUMBER, csv_header
from ragcommon.text.rules import FENCE, ITEM, MAX_HEADING, MAX_HTML_HEADING, heading_of, heading_text

# The beginning of a heading in HTML that is not closed.
OPEN_HEADING = re.compile(r" {0,3}<h([1-6])[\s>](?!.*</h\1>)", re.DOTALL | re.IGNORECASE)
# At least three characters: "-- " is the line above a signature.
UNDERLINE = re.compile(r" {0,3}(?:={3,}|-{3,})$")
# A line that an underline can turn into a heading: it has a letter or digit, and is not code, quote or table.
TITLE = re.compile(r" {0,3}(?![ \t>|]).*?[^\W_]")
# Outer headings are dropped from a longer path.
MAX_PATH = 600
# A longer block is cut, so that the caller can be cancelled in between.
MAX_BLOCK = 250_000
# The characters of the rule below a table header.
TABLE_RULE = frozenset("|:- \t\r\n")
# A longer table header is not repeated in each chunk: it would displace the rows.
MAX_HEADER = 1_000
# `@article{knuth1984,`; `@string` and `@comment` have no key.
ENTRY = re.compile(r"^[ \t]*@[a-zA-Z]+[ \t]*[{(][ \t]*(?:(?P<key>[^\s,={}()\"#]{1,200}),)?", re.MULTILINE)
# The rule below the names of aligned columns, with the line end above it; and a gap between these.
RULE = re.compile(r"\n(?=[^\n]*[-=─━═]{5})[-=+|─━═┼├┤╪╞╡╬╠╣ \t]+\n")
COLUMNS = re.compile(r" {2,}| *[|│║] *")
# A gap between the columns of a rule.
RULED_COLUMNS = re.compile(r"[-=─━═][+|┼╪╬ \t]+[-=─━═]")
CROSSINGS = frozenset("+┼╪╬")
# Lines below a rule without columns of which two must have those of the line above it.
ROWS_BELOW = 5
BLANK_LINES = re.compile(r"\n[ \t\r\n\f]*\n")
# Characters that are split into lines at a time: a list of all lines would take more memory than the text.
WINDOW = 64_000


Kind = Literal["heading", "paragraph", "item", "table", "code", "quote"]
# Kinds that are only cut between lines.
LINES = frozenset(("table", "code"))
# The kind of a block by its first character; items and code need more than that.
KIND_BY_MARK: dict[str, Kind] = {"|": "table", ">": "quote"}


class Block(Struct, frozen=True, gc=False):
    """A range of the text. Blocks of one section share a heading."""

    start: int
    end: int
    section: int = 0
    heading: str = ""  # the path of headings above, joined by " > "
    kind: Kind = "paragraph"
    level: int = 0  # of a heading, from 1
    is_continued: bool = False  # continues the previous block, which was too long
    header: tuple[int, int] = (0, 0)  # the range of the header, if it is part of a table with one
    nearby: tuple[tuple[int, int], ...] = ()  # ranges that are embedded as context
    is_soft: bool = False  # its section may share a chunk with others
    symbol: str = ""  # whose definition it is, if its heading names several


def paragraphs(text: str, start: int = 0, end: int | None = None) -> Iterator[Block]:
    """The blocks of plain text: each paragraph with the blank lines after it."""
    end = len(text) if end is None else end
    for match in BLANK_LINES.finditer(text, start, end):
        yield _paragraph(text, start, match.end())
        start = match.end()
    if start < end:
        yield _paragraph(text, start, end)


def _paragraph(text: str, start: int, end: int) -> Block:
    """A paragraph, or a table with aligned columns, if a rule is below their names."""
    header = 0
    for rule in RULE.finditer(text, start, min(end, start + MAX_HEADER)):
        above = text[start : rule.start()].rpartition("\n")[2]
        below = text[rule.end() : min(end, rule.end() + MAX_HEADER)].split("\n", ROWS_BELOW)[:ROWS_BELOW]
        cells = COLUMNS.split(below[0].strip())
        is_header = COLUMNS.search(above.strip()) and len(cells) > 1
        if is_header and (RULED_COLUMNS.search(rule[0]) or _are_aligned(above, below)):
            header = rule.end()
            # Other rules part the rows.
            if any(map(NUMBER.fullmatch, cells)) or not CROSSINGS.isdisjoint(rule[0]):
                break
    return Block(start, end, kind="table", header=(start, header)) if header else Block(start, end)


def _are_aligned(names: str, rows: Iterable[str]) -> bool:
    """Whether two rows or more have a gap below each gap between the names, which are no item of a list."""
    gaps = [range(*gap.span()) for gap in COLUMNS.finditer(names.rstrip()) if gap.start()]
    blanks = ({at for gap in COLUMNS.finditer(row) for at in range(*gap.span())} for row in rows)
    aligned = [row for row in blanks if not any(map(row.isdisjoint, gaps))]
    return len(aligned) > 1 and not ITEM.match(names)


def csv_blocks(text: str) -> Iterator[Block]:
    """One table. What is above the names of its columns belongs to its header."""
    _, end = csv_header(text)
    if text:
        yield Block(0, len(text), kind="table", header=(0, end if end <= MAX_HEADER else 0))


def bibtex_blocks(text: str) -> Iterator[Block]:
    """The entries of a bibliography, each a section under its key."""
    entries = [(found.start(), found["key"] or "") for found in ENTRY.finditer(text)]
    starts = [(0, ""), *entries] if entries and entries[0][0] > 0 else entries or [(0, "")]
    for number, ((start, key), (end, _)) in enumerate(pairwise([*starts, (len(text), "")])):
        yield Block(start, end, number, key)


def markdown_blocks(text: str) -> Iterator[Block]:
    """The headings, list items, tables, code fences and paragraphs, each with the blank lines after it."""
    path: list[tuple[int, str]] = []
    heading, section = "", 0
    start = offset = 0
    fence = above = ""  # `above`: the line of a block that has only one so far
    is_new = False  # the next non-blank line begins a block
    kind: Kind = "paragraph"
    is_continued = False
    header = (0, 0)

    def block(end: int, level: int = 0) -> Block:
        return Block(start, end, section, heading, "heading" if level else kind, level, is_continued, header)

    for line in _with_whole_headings(lines(text)):
        begin, offset = offset, offset + len(line)
        if begin - start >= MAX_BLOCK:
            yield block(begin)
            start, above, is_continued = begin, "", not is_new
        if fence:
            if closes(line, fence):
                fence, is_new = "", True
            continue
        mark = line.lstrip()[:1]
        if not mark:
            is_new = True
            continue
        is_marked = mark == "#" or (mark == "<" and line.lstrip()[1:2] in "hH")
        title = heading_of(line) if is_marked else None
        underlined = setext_heading(above, line) if mark in "=-" and not is_new else None
        item = ITEM.match(line) if mark in "-*+0123456789" else None
        fence = opened(line, mark, item)
        is_row = mark == "|"
        begins = is_new or title or fence or item or is_row != (kind in LINES)
        if begins and start < begin and not underlined:
            yield block(begin)
            start, header, is_continued = begin, (0, 0), False
        elif is_row and above and is_table_rule(line) and offset - start <= MAX_HEADER:
            header = (start, offset)
        above = ""
        if start == begin:
            above, is_continued = line, is_continued and not begins
            kind = "item" if item else "code" if fence else KIND_BY_MARK.get(mark, "paragraph")
        is_new = False
        if title := title or underlined:
            path = [*(higher for higher in path if higher[0] < title[0]), title]
            heading, section = joined([name for _, name in path if name]), section + 1
            yield block(offset, title[0])
            start, above, kind = offset, "", "paragraph"
    if start < len(text):
        yield block(len(text))


def lines(text: str) -> Iterator[str]:
    """Like `str.splitlines` with line ends, but lazy; a very long line is split."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + WINDOW, start + 2 * WINDOW) + 1 or start + 2 * WINDOW
        yield from text[start:end].splitlines(keepends=True)
        start = end


def _with_whole_headings(lines: Iterable[str]) -> Iterator[str]:
    """Lines; those of a heading in HTML are one."""
    held: list[str] = []
    for line in lines:
        if not held and line.lstrip()[:2] not in ("<h", "<H"):
            yield line
            continue
        held.append(line)
        whole = "".join(held)
        if OPEN_HEADING.match(whole) and line.strip() and len(whole) <= MAX_HTML_HEADING:
            continue
        yield from [whole] if len(held) > 1 and heading_of(whole) else held
        held = []
    yield from held


def joined(names: list[str]) -> str:
    """A path of headings as text: the innermost heading, and as many outer ones as fit."""
    path = " > ".join(names)
    return path if len(path) <= MAX_PATH else joined(names[1:])


def setext_heading(above: str, line: str) -> tuple[int, str] | None:
    """Level and text of the setext heading that `line` underlines, if any."""
    if max(len(above), len(line)) > MAX_HEADING or not UNDERLINE.match(line.rstrip()):
        return None
    is_title = TITLE.match(above) and not ITEM.match(above)
    return (1 if "=" in line else 2, heading_text(above)) if is_title else None


def is_table_rule(line: str) -> bool:
    """Whether a line separates the header of a table from its rows."""
    return "-" in line and TABLE_RULE.issuperset(line)


def opened(line: str, mark: str, item: re.Match[str] | None) -> str:
    """The characters of the code fence that a line opens, perhaps in a list; "": none. `mark`: its first."""
    opening = FENCE.match(line, item.end() if item else 0) if item or mark in "`~" else None
    return opening[1] if opening else ""


def with_fences(text: str) -> Iterator[tuple[str, str]]:
    """Each line, with the characters of the code fence that is open after it; "" outside of code."""
    fence = ""
    for line in lines(text):
        mark = line.lstrip()[:1]
        if not fence:
            fence = opened(line, mark, ITEM.match(line) if mark in "-*+0123456789" else None)
        elif closes(line, fence):
            fence = ""
        yield line, fence


def closes(line: str, fence: str) -> bool:
    """Whether a line closes a code fence: the opening characters, at least as many, and nothing else."""
    mark = line.strip()
    return mark.startswith(fence) and not mark.strip(fence[0])
