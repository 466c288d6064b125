"""XLSX: each sheet as paragraphs and a table; the places are rows, or cells that are alone in their row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
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
# Number formats that are followed: zeros, decimals and a percent sign. Larger numbers are shown without them.
NUMBER_FORMAT = re.compile(r"""0{1,20}(?:\.(0{1,9}))?((?:\\?\s|"\s*")*%)?""")
QUOTING = dict.fromkeys(map(ord, '\\"'))
MAX_FORMATTED = 1e15


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
            unknown += [cell_label(name, at, number) for at, (value, _) in values.items() if value is UNKNOWN]
            shown = {at: text for at, cell in values.items() if (text := _shown(*cell)).strip()}
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


def _rows(
    workbook: Workbook, sheet: ReadOnlyWorksheet
) -> Iterator[tuple[int, dict[int, tuple[object, str]]]]:
    """The rows present in a sheet: their numbers, from 1, and values with number formats by column, from 0.

    openpyxl's own iterator also yields missing rows and cells, a million of them if only the last one exists,
    and trusts the dimensions that the file declares.
    """
    from openpyxl.styles.numbers import BUILTIN_FORMATS, BUILTIN_FORMATS_MAX_SIZE
    from openpyxl.worksheet._reader import FORMULA_TAG, WorkSheetParser

    class Parser(WorkSheetParser):  # type: ignore[misc]
        def parse_cell(self, element: Element) -> dict[str, object]:
            cell: dict[str, object] = super().parse_cell(element)
            if cell["value"] is None and element.find(FORMULA_TAG) is not None:
                cell["value"] = UNKNOWN
            return cell

    with sheet._get_source() as source:
        dates = workbook._date_formats, workbook._timedelta_formats
        parser = Parser(source, sheet._shared_strings, True, workbook.epoch, *dates)
        codes = BUILTIN_FORMATS | dict(enumerate(workbook._number_formats, BUILTIN_FORMATS_MAX_SIZE))
        formats = {at: codes.get(style.numFmtId, "") for at, style in enumerate(workbook._cell_styles)}
        for number, cells in parser.parse():
            yield (
                number,
                {cell["column"] - 1: (cell["value"], formats.get(cell["style_id"], "")) for cell in cells},
            )


def _shown(value: object, number_format: str) -> str:
    """A value as the sheet shows it, dates in ISO 8601."""
    match value:
        case None | Unknown():
            return ""
        case bool():
            return str(value).upper()
        case timedelta():
            minutes, seconds = divmod(round(abs(value).total_seconds()), 60)
            shown = f"{'-' if value < timedelta() else ''}{minutes // 60}:{minutes % 60:02}"
            return f"{shown}:{seconds:02}" if "ss" in number_format.lower() else shown
        case int() | float() if abs(value) < MAX_FORMATTED and (
            found := NUMBER_FORMAT.fullmatch(number_format)
        ):
            decimals, percent = found[1] or "", found[2] or ""
            number = Decimal(repr(value)) * (100 if percent else 1)
            rounded = number.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
            width = len(number_format) - len(percent) + (value < 0)
            return f"{rounded:0{width}f}{percent.translate(QUOTING)}"
        case float():
            return f"{value:.15g}"
        case datetime():
            return value.isoformat(" ") if value.time() != time() else value.date().isoformat()
        case date():
            return value.isoformat()
    return str(value)
