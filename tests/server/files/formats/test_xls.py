"""Workbooks of Excel 97 to 2003."""

from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.xls import read
from tests.support.documents import xls

pytest.importorskip("xlrd", reason="the extra `office` is not installed")

FILE = Path("a.xls")


def test_the_places_are_the_rows_and_single_cells_of_the_sheets() -> None:
    found = read(
        FILE, xls({"Costs": [["Paid by Ada"], ["Item", "Price"], [], ["Tee für Öl", 4.5], ["Cups", 12.0]]})
    )
    assert found.text == (
        "# Costs\n\nPaid by Ada\n\n| Item | Price |\n| --- | --- |\n| Tee für Öl | 4.5 |\n| Cups | 12 |\n"
    )
    assert found.places == [
        *((1, "sheet Costs"), (3, "sheet Costs A1"), (5, "sheet Costs row 2")),
        *((7, "sheet Costs row 4"), (8, "sheet Costs row 5")),
    ]


def test_hidden_sheets_are_named() -> None:
    found = read(FILE, xls({"Costs": [["Item", "Price"]], "(old)": [["x", "y"]]}))
    assert "# (old) (hidden)\n" in found.text
    assert found.note == "has the hidden sheet (old)"


def test_merged_cells_are_in_each_of_their_rows() -> None:
    rows: list[list[str | float]] = [["Who", "Where"], ["Ada", "Bern"], ["", "Chur"], ["Eve", "Genf"]]
    assert read(FILE, xls({"Trips": rows}, merged=(1, 2, 0, 0))).text.splitlines()[4:] == [
        *("| Ada | Bern |", "| Ada | Chur |", "| Eve | Genf |")
    ]


def test_a_damaged_workbook_is_refused() -> None:
    data = xls({"Costs": [["Item", "Price"]]})
    for broken in (data[:700], data[:512] + bytes(1_024) + data[1_536:]):
        with pytest.raises(NotText, match="is a damaged Excel file, or not one at all"):
            read(FILE, broken)


def test_a_number_that_is_no_date_is_read_in_a_column_of_dates() -> None:
    plain, dates = pack("<HHHH", 0xE0, 20, 0, 0), pack("<HHHH", 0xE0, 20, 0, 14)
    data = xls({"Calls": [["Day", "Call"], [45_000.0, 4_930_123_456.0]]}).replace(plain, dates)
    assert read(FILE, data).text.endswith("| 2023-03-15 | 4930123456 |\n")
