"""Places in a document, such as pages, sheets, slides and messages; where there are none, lines. Pure.

Both programs name them: a hit is cited by its place.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TypeAlias
from urllib.parse import unquote

# The line, from 1, with which it begins, and its label, such as "p. 12".
Place: TypeAlias = tuple[int, str]

_line = itemgetter(0)
PAGE = re.compile(r"(?:^|[ ,])p\. (\d+)")
# What follows a heading in the label of a paragraph.
PARAGRAPH = re.compile(r"(?:^| )(?:¶|table) \d")
ROW = re.compile(r"sheet (.*) row (\d+)")
# What takes a plural before the first and the last number of a range.
COUNTED = re.compile(r"(?:^| )(?:row|slide|message)$")
# Characters of each heading in the label of a paragraph.
MAX_NAME = 60
# Ends the label of a page whose text an OCR program has read.
OCR = "(OCR)"
# Between the cells of a row in Markdown.
DIVIDER = re.compile(r"(?<!\\)\|")


def short_path(heading: str) -> str:
    """A path of headings as the label of a paragraph has it: each is cut to MAX_NAME."""
    names = heading.split(" > ") if heading else []
    cut = (name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1].rstrip()}…" for name in names)
    return " > ".join(cut)


def within(places: Sequence[Place], start: int, end: int) -> Sequence[Place]:
    """The places, in the order of their lines, that the lines from `start` to `end` (inclusive) are in."""
    first = max(bisect_right(places, start, key=_line) - 1, 0)
    return places[first : bisect_right(places, end, key=_line)]


def label(places: Sequence[Place], start: int, end: int) -> str:
    """The label of some lines: "p. 12–14", "sheet Costs row 3", "slides 2–4"; "" if they are in no place.

    It ends with the mark OCR if one of the places does.
    """
    names = [name for _, name in within(places, start, end)]
    if any(name.endswith(OCR) for name in names):
        return f"{_label([name.removesuffix(OCR).rstrip() for name in names])} {OCR}".lstrip()
    return _label(names)


def _label(names: list[str]) -> str:
    if not names:
        return ""
    while len(names) > 1 and names[1].startswith(f"{names[0]} "):
        del names[0]  # "sheet Costs" is the heading of the sheet
    first, last = names[0], names[-1]
    if first == last:
        return first
    kind = first.rpartition(" ")[0]
    if not (kind and last.startswith(f"{kind} ")):
        heading = PARAGRAPH.split(first)[0]
        kind = heading if last.startswith(heading) and PARAGRAPH.match(last, len(heading)) else ""
    if not (kind and last.startswith(f"{kind} ")):
        return f"{first}–{last}"
    from_, to = first[len(kind) + 1 :], last[len(kind) + 1 :]
    return f"{kind}{'s' if COUNTED.search(kind) else ''} {from_}–{to}"


def page_in(name: str) -> int | None:
    """The first page that a label or a location names, from 1."""
    found = PAGE.search(name)
    return int(found[1]) if found else None


def row_label(sheet: str, row: int) -> str:
    """The label of a row of a sheet, from 1: "sheet Costs row 3"."""
    return f"sheet {sheet} row {row}"


def cell_label(sheet: str, column: int, row: int) -> str:
    """The label of a cell of a sheet; columns count from 0, rows from 1: "sheet Costs B3"."""
    return f"sheet {sheet} {letters(column + 1)}{row}"


def letters(number: int) -> str:
    """1 is "A", 26 is "Z", 27 is "AA"."""
    text = ""
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("A") + digit) + text
    return text


def with_cell(places: Sequence[Place], line: int, row: str, text: str) -> list[Place]:
    """The places, where that of `line` is the only cell of the table's row there that holds the text."""
    cells = [" ".join(cell.split()) for cell in DIVIDER.split(row.strip().strip("|"))]
    holding = [column for column, cell in enumerate(cells) if text and text in cell]
    if len(holding) != 1:
        return list(places)
    return [
        (first, cell_label(found[1], holding[0], int(found[2])))
        if first == line and (found := ROW.fullmatch(name))
        else (first, name)
        for first, name in places
    ]


def location(name: str, lines: Iterable[tuple[int, int]], places: Sequence[Place]) -> str:
    """Ranges of lines (inclusive) of a document: "thesis.pdf p. 12", "notes.md:3–5, 8"."""
    ranges = sorted(set(lines))
    name = " ".join(name.splitlines())  # The name of a file may have line breaks.
    if labels := dict.fromkeys(filter(None, (label(places, *one) for one in ranges))):
        return f"{name} {', '.join(labels)}"
    return f"{name}:{', '.join(f'{start}' if start == end else f'{start}–{end}' for start, end in ranges)}"


@lru_cache(1_000)
def file_name(uri: str, title: str = "") -> str:
    """The last part of a URI; for a hash the title, if there is one; of a web page the whole address."""
    if uri.startswith(("http://", "https://")):
        return uri
    if uri.startswith("sha256:"):
        return title or uri
    return unquote(uri).rstrip("/").rpartition("/")[2] or uri
