"""XLSX: each sheet as a table below paragraphs; the places are the rows, or their only cells."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ragconfig.places import cell_label, row_label
from ragmemory.files.formats.office import open_office
from ragmemory.files.formats.read import Damaged, Read, TextBuilder, one_line

if TYPE_CHECKING:
    from openpyxl import Workbook

KIND = "Excel"
MOST_ROWS = 100_000
MOST_COLUMNS = 200


def read(path: Path, data: bytes) -> Read:
    """The values of a workbook, as they were last calculated. Raises NotText."""
    workbook = open_office(data, KIND, _open)
    builder, left = TextBuilder(), MOST_ROWS
    notes: list[str] = []
    for sheet in workbook.worksheets:
        name = one_line(sheet.title)
        is_begun = False
        rows: list[list[str]] = []
        places: list[str] = []
        for number, cells in _rows(sheet.iter_rows(values_only=True, max_col=MOST_COLUMNS)):
            if not left:
                notes = [f"only its first {MOST_ROWS:,} rows were read"]
                break
            left -= 1
            if not is_begun:
                builder.add(f"# {name}", f"sheet {name}")
                is_begun = True
            filled = [column for column, cell in enumerate(cells) if cell.strip()]
            place = row_label(name, number) if len(filled) > 1 else cell_label(name, filled[0], number)
            if rows or len(filled) > 1:
                rows.append(cells)
                places.append(place)
            else:
                builder.add(cells[filled[0]], place)
        builder.add_rows(rows, places)
    return builder.read(path.name, *notes)


def _open(file: IO[bytes]) -> Workbook:
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        return openpyxl.load_workbook(file, read_only=True, data_only=True)
    except InvalidFileException:
        raise Damaged(KIND) from None


def _rows(rows: Iterator[tuple[object, ...]]) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, with their numbers, without empty cells at their ends."""
    for number, row in enumerate(rows, 1):
        cells = [_shown(value) for value in row]
        while cells and not cells[-1].strip():
            cells.pop()
        if cells:
            yield number, cells


def _shown(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).upper()
        case float():
            return f"{value:.15g}"
        case datetime():
            return value.isoformat(" ") if value.time() != time() else value.date().isoformat()
        case date():
            return value.isoformat()
    return str(value)
