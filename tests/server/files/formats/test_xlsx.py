"""Workbooks."""

from __future__ import annotations

from datetime import date, datetime
from io import BytesIO
from pathlib import Path

import pytest

from ragconfig.files.decoding import NotText
from ragmemory.files.formats import xlsx as module
from ragmemory.files.formats.xlsx import read
from tests.support.documents import archive

openpyxl = pytest.importorskip("openpyxl", reason="the extra `office` is not installed")

FILE = Path("a.xlsx")


def made() -> bytes:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.title = "Costs"
    sheet.append(["Item", "Price", "Paid"])
    sheet.append(["Tea", 4.5, True])
    sheet.append([])
    sheet.append(["Cups", 12, None])
    dates = workbook.create_sheet("Dates")
    dates.append([date(2026, 11, 22), datetime(2026, 11, 22, 9, 30)])
    buffer = BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


def test_the_places_are_the_rows_of_the_sheets() -> None:
    found = read(FILE, made())
    assert found.text == (
        "# Costs\n\n| Item | Price | Paid |\n| --- | --- | --- |\n| Tea | 4.5 | TRUE |\n| Cups | 12 |  |\n\n"
        "# Dates\n\n| 2026-11-22 | 2026-11-22 09:30:00 |\n| --- | --- |\n"
    )
    assert found.places == [
        *((1, "sheet Costs"), (3, "sheet Costs row 1"), (5, "sheet Costs row 2"), (6, "sheet Costs row 4")),
        *((8, "sheet Dates"), (10, "sheet Dates row 1")),
    ]


def test_single_cells_above_a_table_are_paragraphs_and_within_it_rows() -> None:
    workbook = openpyxl.Workbook()
    workbook.active.title = "Q3"
    workbook.active["AB2"] = "All prices in euros"
    for row in (["Item", "Price"], ["Drinks"], ["Tea", 4.5]):
        workbook.active.append(row)
    buffer = BytesIO()
    workbook.save(buffer)
    found = read(FILE, buffer.getvalue())
    assert found.text == (
        "# Q3\n\nAll prices in euros\n\n| Item | Price |\n| --- | --- |\n| Drinks |  |\n| Tea | 4.5 |\n"
    )
    assert found.places == [
        *((1, "sheet Q3"), (3, "sheet Q3 AB2"), (5, "sheet Q3 row 3")),
        *((7, "sheet Q3 A4"), (8, "sheet Q3 row 5")),
    ]


def test_only_so_many_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 2)
    found = read(FILE, made())
    assert "Cups" not in found.text
    assert found.note == "only its first 2 rows were read"


@pytest.mark.parametrize("data", [b"PK", archive({"xl/workbook.xml": "<x/>"})])
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(NotText, match="is a damaged Excel file"):
        read(FILE, data)
