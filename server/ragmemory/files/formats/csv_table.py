"""CSV files as tables: those whose cells have line breaks, and those in archives.

Passages repeat the header of a table. Rows are one line each, and places, counted as in a spreadsheet.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from ragcommon.files.decoding import NoText, decode
from ragcommon.text.columns import csv_header
from ragmemory.files.formats import text as plain
from ragmemory.files.formats.file_text import MAX_CHARACTERS, FileText, TextBuilder, one_line
from ragmemory.files.formats.sheets import MAX_ROWS

# Possible delimiters. If several fit equally well, the first one counts: commas are the most likely in cells.
DELIMITERS = {".csv": "\t;,", ".tsv": "\t"}
# Rows from which the delimiter is derived.
FIRST_ROWS = 20
LINE = re.compile(r"[^\n]*\n|[^\n]+")


def read(path: Path, data: bytes) -> FileText:
    """A CSV file as a table; as it is if it is none. Raises NotText."""
    return as_table(plain.read(path, data), path.suffix.lower())


def has_line_breaks(suffix: str, data: bytes) -> bool:
    """Whether a cell of a CSV file that is not too long for a table has a line break."""
    if b'"' not in data or len(data) > MAX_CHARACTERS:
        return False
    try:
        text = decode(data).text
        delimiter = _delimiter(text, suffix)
        return bool(delimiter) and any("\n" in cell for _, row in _rows(text, delimiter) for cell in row)
    except (NoText, csv.Error):
        return False


def as_table(found: FileText, suffix: str) -> FileText:
    """The text of a CSV file of several rows as a table; other texts as they are."""
    delimiter = _delimiter(found.text, suffix)
    if not delimiter or len(found.text) > MAX_CHARACTERS:
        return found
    try:
        # Counted without keeping their cells, which take many times the memory of the text.
        count = sum(1 for _ in islice(_rows(found.text, delimiter), MAX_ROWS + 1))
    except csv.Error:
        return found
    if not 1 < count <= MAX_ROWS:
        return found
    rows = {number: list(map(one_line, row)) for number, row in _rows(found.text, delimiter)}
    builder = TextBuilder()
    # A title and notes above the names of the columns are paragraphs.
    header = found.text[slice(*csv_header(found.text))]
    names = [list(map(one_line, row)) for _, row in _rows(header, delimiter)]
    while names and rows[first := next(iter(rows))] != names[0]:
        builder.add(" ".join(filter(None, rows.pop(first))), f"row {first}")
    builder.add_rows([*rows.values()], [f"row {number}" for number in rows])
    return replace(builder.build(found.title, found.note), tags=found.tags)


def _delimiter(text: str, suffix: str) -> str:
    """What parts the cells; "" if the rows do not agree."""
    agreeing = {delimiter: _agreeing(text, delimiter) for delimiter in DELIMITERS[suffix]}
    best = max(agreeing, key=agreeing.__getitem__)
    return best if agreeing[best] else ""


def _agreeing(text: str, delimiter: str) -> int:
    """How many of the first rows have the same number of cells, above one; 0 unless it is most of them."""
    try:
        sizes = Counter(len(row) for _, row in islice(_rows(text, delimiter), FIRST_ROWS))
    except csv.Error:
        return 0
    count = max((count for size, count in sizes.items() if size > 1), default=0)
    return count if 2 * count > sizes.total() else 0


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that have text, with their numbers. Raises csv.Error, also if a quotation is not closed."""
    lines = (line[0] for line in LINE.finditer(text))
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    return ((number, row) for number, row in enumerate(rows, 1) if any(row))
