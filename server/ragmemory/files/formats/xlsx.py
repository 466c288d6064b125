"""XLSX: the sheets of a workbook, with numbers, percentages and durations in the formats that it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ragcommon.text.places import cell_label
from ragmemory.files.formats.file_text import COMMENTS, Damaged, FileText, TextBuilder, listed, one_line
from ragmemory.files.formats.office import open_office
from ragmemory.files.formats.sheets import Sheet, add_sheets, shown

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from openpyxl import Workbook
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet

KIND = "Excel"


# An element of the list of merged cells, and the characters that it has at most.
MERGED = re.compile(rb'mergeCell\s+ref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"')
MAX_ELEMENT = 50
BLOCK = 1 << 20
# A part of the archive that holds comments.
COMMENT = re.compile(r"xl/(?:threaded)?comments", re.IGNORECASE)
# The value of a formula that was never calculated.
UNKNOWN = object()


def read(path: Path, data: bytes) -> FileText:
    """The values of a workbook, as they were last calculated. Raises NotText."""
    workbook = open_office(data, KIND, _open)
    builder = TextBuilder()
    unknown: list[str] = []  # cells
    notes = add_sheets(
        (
            Sheet(sheet.title, sheet.sheet_state != "visible", _rows(workbook, sheet, unknown), _spans(sheet))
            for sheet in workbook.worksheets
        ),
        builder,
    )
    if any(COMMENT.search(name) for name in workbook._archive.namelist()):
        notes.append(COMMENTS)
    if unknown:
        cells = listed(unknown, " cells")
        notes.append(f"has no calculated values in {cells}: open it in a spreadsheet program and save it")
    return builder.build(path.name, "; ".join(notes))


def _spans(sheet: ReadOnlyWorksheet) -> dict[tuple[int, int], int]:
    """The cells that span rows, as `Sheet` has them. They are listed below the rows."""
    from openpyxl.utils.cell import range_boundaries

    found, tail = dict[tuple[int, int], int](), b""
    with sheet._get_source() as source:
        while part := source.read(BLOCK):
            tail += part
            for merged in MERGED.findall(tail):
                left, top, _, bottom = range_boundaries(merged.decode())
                if top < bottom:
                    found[top, left - 1] = bottom
            tail = tail[-MAX_ELEMENT:]
    return found


def _open(file: IO[bytes]) -> Workbook:
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        return openpyxl.load_workbook(file, read_only=True, data_only=True)
    except InvalidFileException:
        raise Damaged(KIND) from None


def _rows(
    workbook: Workbook, sheet: ReadOnlyWorksheet, unknown: list[str]
) -> Iterator[tuple[int, dict[int, str]]]:
    """The rows present in a sheet, as `Sheet` has them. Cells without a calculated value go to `unknown`.

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
            values = {cell["column"] - 1: (cell["value"], cell["style_id"]) for cell in cells}
            unknown += [
                cell_label(one_line(sheet.title), at, number)
                for at, (value, _) in values.items()
                if value is UNKNOWN
            ]
            yield (
                number,
                {
                    at: shown(value, formats.get(style, ""))
                    for at, (value, style) in values.items()
                    if value is not UNKNOWN
                },
            )
