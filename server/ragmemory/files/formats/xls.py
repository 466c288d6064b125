"""XLS: the sheets of a workbook of Excel 97 to 2003."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.file_text import Damaged, FileText, MissingExtra, TextBuilder
from ragmemory.files.formats.sheets import Sheet, add_sheets, shown

if TYPE_CHECKING:
    from xlrd import Book
    from xlrd.sheet import Cell

KIND = "Excel"


def read(path: Path, data: bytes) -> FileText:
    """The values of a workbook, as they were last calculated. Raises NotText."""
    try:
        import xlrd
    except ImportError:
        raise MissingExtra("office") from None
    builder = TextBuilder()
    try:
        # The library prints its warnings.
        book = xlrd.open_workbook(file_contents=data, formatting_info=True, logfile=StringIO())
        notes = add_sheets(_sheets(book), builder)
    except xlrd.XLRDError as error:
        if "encrypted" in str(error):
            raise NotText("is encrypted with a password") from None
        raise Damaged(KIND) from None
    except (NotText, MemoryError):
        raise
    except Exception:  # It checks little of a damaged file.
        raise Damaged(KIND) from None
    return builder.build(path.name, "; ".join(notes))


def _sheets(book: Book) -> Iterator[Sheet]:
    for sheet in book.sheets():
        rows = (
            (number + 1, {at: _shown(book, cell) for at, cell in enumerate(sheet.row(number))})
            for number in range(sheet.nrows)
        )
        spans = {(top + 1, left): bottom for top, bottom, left, _ in sheet.merged_cells if top + 1 < bottom}
        yield Sheet(sheet.name, sheet.visibility != 0, rows, spans)


def _shown(book: Book, cell: Cell) -> str:
    import xlrd

    if cell.ctype in (xlrd.XL_CELL_EMPTY, xlrd.XL_CELL_BLANK):
        return ""
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return str(xlrd.error_text_from_code.get(cell.value, ""))
    number_format = book.format_map[book.xf_list[cell.xf_index].format_key].format_str
    value = cell.value
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        value = bool(value)
    elif cell.ctype == xlrd.XL_CELL_DATE:
        value = _moment(cell.value, number_format, book.datemode)
    return shown(value, number_format)


def _moment(value: float, number_format: str, datemode: int) -> object:
    """A duration, a time of the day or a date, by its format and size."""
    import xlrd

    try:
        if "[h" in number_format.lower():
            return timedelta(days=value)
        found = xlrd.xldate_as_datetime(value, datemode)
    except (OverflowError, ValueError):
        return value  # It is no date: Excel shows "#####".
    return found.time() if 0 <= value < 1 else found
