"""XLSX: each sheet as paragraphs and a table; the places are rows, or cells that are alone in their row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ragcommon.text.places import cell_label, row_label
from ragmemory.files.formats.file_text import Damaged, FileText, TextBuilder, listed, one_line
from ragmemory.files.formats.office import open_office

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from openpyxl import Workbook
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet

KIND = "Excel"
MAX_ROWS = 100_000
MAX_COLUMNS = 200


class Unknown:
    """The value of a formula that was never calculated."""


UNKNOWN = Unknown()


def read(path: Path, data: bytes) -> FileText:
    """The values of a workbook, as they were last calculated. Raises NotText."""
    workbook = open_office(data, KIND, _open)
    builder, left = TextBuilder(), MAX_ROWS
    notes: list[str] = []
    unknown: list[str] = []  # cells
    for sheet in workbook.worksheets:
        name = one_line(sheet.title)
        heading = f"# {name}"
        if sheet.sheet_state != "visible":
            heading += " (hidden)"
            notes.append(f"has the hidden sheet {name}")
        rows: list[list[str]] = []
        places: list[str] = []
        for number, values in _rows(workbook, sheet):
            unknown += [cell_label(name, at, number) for at, value in values.items() if value is UNKNOWN]
            shown = {at: text for at, value in values.items() if (text := _shown(value)).strip()}
            if any(column >= MAX_COLUMNS for column in shown):
                notes.append(f"only its first {MAX_COLUMNS} columns were read")
            filled = [column for column in shown if column < MAX_COLUMNS]
            if not filled:
                continue
            if not left:
                notes.append(f"only its first {MAX_ROWS:,} rows were read")
                break
            left -= 1
            builder.add(heading, f"sheet {name}")
            heading = ""
            place = row_label(name, number) if len(filled) > 1 else cell_label(name, filled[0], number)
            if rows or len(filled) > 1:
                rows.append([shown.get(column, "") for column in range(max(filled) + 1)])
                places.append(place)
            else:
                builder.add(shown[filled[0]], place)
        builder.add_rows(rows, places)
    if unknown:
        cells = listed(unknown, " cells")
        notes.append(f"has no calculated values in {cells}: open it in a spreadsheet program and save it")
    return builder.build(path.name, "; ".join(dict.fromkeys(notes)))


def _open(file: IO[bytes]) -> Workbook:
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        return openpyxl.load_workbook(file, read_only=True, data_only=True)
    except InvalidFileException:
        raise Damaged(KIND) from None


def _rows(workbook: Workbook, sheet: ReadOnlyWorksheet) -> Iterator[tuple[int, dict[int, object]]]:
    """The rows present in a sheet: their numbers, from 1, and their values by column, from 0.

    openpyxl's own iterator also yields missing rows and cells, a million of them if only the last one exists,
    and trusts the dimensions that the file declares.
    """
    from openpyxl.worksheet._reader import FORMULA_TAG, WorkSheetParser

    class Parser(WorkSheetParser):  # type: ignore[misc]
        def parse_cell(self, element: Element) -> dict[str, object]:
            cell: dict[str, object] = super().parse_cell(element)
            if cell["value"] is None and element.find(FORMULA_TAG) is not None:
                cell["value"] = UNKNOWN
            return cell

    with sheet._get_source() as source:
        formats = workbook._date_formats, workbook._timedelta_formats
        parser = Parser(source, sheet._shared_strings, True, workbook.epoch, *formats)
        for number, cells in parser.parse():
            yield number, {cell["column"] - 1: cell["value"] for cell in cells}


def _shown(value: object) -> str:
    match value:
        case None | Unknown():
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
