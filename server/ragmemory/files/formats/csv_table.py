"""CSV files as tables: those whose cells have line breaks, and those in archives.

Passages repeat the header of a table. Rows are one line each, and places, counted as in a spreadsheet.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from ragcommon.files.decoding import NoText, decode
from ragcommon.text import columns
from ragcommon.text.columns import Row, csv_delimiter, csv_header, csv_rows
from ragmemory.files.formats import text as plain
from ragmemory.files.formats.file_text import MAX_CHARACTERS, FileText, TextBuilder, one_line
from ragmemory.files.formats.sheets import MAX_ROWS
from ragmemory.ingest.documents import MARKDOWN

# The possible delimiters, by extension.
DELIMITERS = {".csv": columns.DELIMITERS, ".tsv": "\t"}


def read(path: Path, data: bytes) -> FileText:
    """A CSV file as a table; as it is if it is none. Raises NotText."""
    return as_table(plain.read(path, data), path.suffix.lower())


def has_line_breaks(suffix: str, data: bytes) -> bool:
    """Whether a cell of a CSV file that is not too long for a table has a line break."""
    if b'"' not in data or len(data) > MAX_CHARACTERS:
        return False
    try:
        text = decode(data).text
        delimiter = csv_delimiter(text, DELIMITERS[suffix])
        rows = _rows(text, delimiter) if delimiter else ()
        return any("\n" in cell for _, row in rows for cell in row.cells)
    except (NoText, csv.Error):
        return False


def as_table(found: FileText, suffix: str) -> FileText:
    """The text of a CSV file of several rows as a table; other texts as they are."""
    delimiter = csv_delimiter(found.text, DELIMITERS[suffix])
    if not delimiter or len(found.text) > MAX_CHARACTERS or found.media_type == MARKDOWN:
        return found
    try:
        # Counted without keeping their cells, which take many times the memory of the text.
        count = sum(1 for _ in islice(_rows(found.text, delimiter), MAX_ROWS + 1))
    except csv.Error:
        return found
    if not 1 < count <= MAX_ROWS:
        return found
    builder = TextBuilder()
    rows: list[list[str]] = []
    places: list[str] = []
    header, _ = csv_header(found.text)
    for number, row in _rows(found.text, delimiter):
        cells = list(map(one_line, row.cells))
        if row.start < header:  # A title and notes above the names of the columns are paragraphs.
            builder.add(" ".join(filter(None, cells)), f"row {number}")
        else:
            rows.append(cells)
            places.append(f"row {number}")
    builder.add_rows(rows, places)
    return replace(builder.build(found.title, found.note), tags=found.tags)


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, Row]]:
    """The rows that have text, with their numbers. Raises csv.Error, also if a quotation is not closed."""
    rows = enumerate(csv_rows(text, delimiter, is_strict=True), 1)
    return ((number, row) for number, row in rows if any(row.cells))
