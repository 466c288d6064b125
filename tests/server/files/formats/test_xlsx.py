"""Workbooks."""

from __future__ import annotations

import os
from datetime import date, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats import sheets
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


def saved(workbook: Any) -> bytes:
    buffer = BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


def with_rows(rows: str) -> bytes:
    """A workbook whose only sheet has these rows, and states another size."""
    with ZipFile(BytesIO(saved(openpyxl.Workbook()))) as file:
        members = {name: file.read(name).decode() for name in file.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    before, _, after = members[sheet].partition("<sheetData>")
    assert '<dimension ref="A1:A1"/>' in before
    members[sheet] = f"{before}<sheetData>{rows}{after}"
    return archive(members)


def test_cells_are_read_wherever_they_are_and_those_between_them_take_no_time() -> None:
    cells = '<row r="1"><c r="A1"><v>1</v></c></row><row r="{0}"><c r="A{0}"><v>2</v></c>{1}</row>'
    data = with_rows(cells.format(1_048_576, '<c r="XFD1048576"><v>3</v></c>'))
    assert len(data) < 10_000
    spent = os.times().user
    found = read(FILE, data)
    assert os.times().user - spent < 1
    assert found.places == [(1, "sheet Sheet"), (3, "sheet Sheet A1"), (5, "sheet Sheet A1048576")]
    assert found.text == "# Sheet\n\n1\n\n2\n"
    assert found.note == "only its first 200 columns were read"


def test_one_wide_row_does_not_make_all_rows_wide() -> None:
    narrow = "".join(
        f'<row r="{n}"><c r="A{n}"><v>1</v></c><c r="B{n}"><v>2</v></c></row>' for n in range(1, 9)
    )
    found = read(FILE, with_rows(narrow + '<row r="9"><c r="A9"><v>1</v></c><c r="CV9"><v>2</v></c></row>'))
    header, rule, *rows, wide = found.text.strip().split("\n")[2:]
    assert rows == ["| 1 | 2 |"] * 7
    assert {line.count("|") for line in (header, rule, wide)} == {101}


def test_durations_shares_and_zeros_are_written_as_the_sheet_shows_them() -> None:
    workbook = openpyxl.Workbook()
    cells: list[tuple[object, str, str]] = [
        (timedelta(hours=41, minutes=15), "[h]:mm", "41:15"),
        (timedelta(minutes=90, seconds=30), "[mm]:ss", "1:30:30"),
        (-timedelta(hours=2), "[h]:mm", "-2:00"),
        (0.19, "0%", "19%"),
        (0.075, '0.0" "%', "7.5 %"),
        (0.07, "0.00\\ %", "7.00 %"),
        (7, "0000", "0007"),
        (-7, "0000", "-0007"),
        (4.5, "0.00", "4.50"),
        (2.675, "0.00", "2.68"),
        (4.5, "#,##0.00 €", "4.50 €"),
        (7e20, "0.00", "7e+20"),
        (date(2026, 11, 22), "dd.mm.yy", "2026-11-22"),
    ]
    for row, (value, number_format, _) in enumerate(cells, 1):
        workbook.active.cell(row, 1, value).number_format = number_format
        workbook.active.cell(row, 2, row)
    lines = read(FILE, saved(workbook)).text.strip().split("\n")
    assert [line.split("|")[1].strip() for line in (lines[2], *lines[4:])] == [shown for *_, shown in cells]


def test_merged_cells_are_in_each_of_their_rows_and_comments_are_named() -> None:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    for row in (["Trips of 2024", None], ["Who", "Where"], ["Ada", "Bern"], [None, "Chur"], ["Eve", "Genf"]):
        sheet.append(row)
    sheet.merge_cells("A1:B1")
    sheet.merge_cells("A3:A4")
    sheet["B4"].comment = openpyxl.comments.Comment("by train", "Ada")
    found = read(FILE, saved(workbook))
    assert found.text.splitlines()[4:] == [
        *("| Who | Where |", "| --- | --- |", "| Ada | Bern |", "| Ada | Chur |", "| Eve | Genf |")
    ]
    assert found.note == "has comments, which were not read"


def test_a_hidden_sheet_is_read_and_named_as_hidden() -> None:
    workbook = openpyxl.Workbook()
    workbook.active["A1"] = "Shown"
    secret = workbook.create_sheet("Salaries")
    secret["A1"] = "Ada"
    secret.sheet_state = "veryHidden"
    found = read(FILE, saved(workbook))
    assert found.text == "# Sheet\n\nShown\n\n# Salaries (hidden)\n\nAda\n"
    assert found.places[2:] == [(5, "sheet Salaries"), (7, "sheet Salaries A1")]
    assert found.note == "has the hidden sheet Salaries"


def test_formulas_that_were_never_calculated_are_named() -> None:
    workbook = openpyxl.Workbook()
    workbook.active["A1"] = 2
    workbook.active["B1"] = "=A1*2"
    for row in range(2, 14):
        workbook.active.cell(row, 3, f"=A1+{row}")
    found = read(FILE, saved(workbook))
    assert found.text == "# Sheet\n\n2\n"
    assert found.note.startswith("has no calculated values in sheet Sheet B1, sheet Sheet C2, ")
    assert found.note.endswith(
        "sheet Sheet C10 and 3 more cells: open it in a spreadsheet program and save it"
    )
    workbook.active["A1"] = "=1+1"
    workbook.active.delete_rows(2, 20)
    with pytest.raises(NotText, match="has no calculated values in sheet Sheet A1, sheet Sheet B1: open it"):
        read(FILE, saved(workbook))


def test_only_the_first_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheets, "MAX_ROWS", 2)
    found = read(FILE, made())
    assert "Cups" not in found.text
    assert found.note == "only its first 2 rows were read"


@pytest.mark.parametrize("data", [b"PK", archive({"xl/workbook.xml": "<x/>"})])
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(NotText, match="is a damaged Excel file"):
        read(FILE, data)
