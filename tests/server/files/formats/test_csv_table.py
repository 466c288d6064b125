"""CSV files whose cells have line breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragmemory.files.formats import csv_table
from ragmemory.files.formats.detection import module_of, read

RECORDS = 'bill,note,state\n1,"late,\nand torn",open\n\n2,,paid\n3,"a ""new"" one",open\n'


def test_each_record_whose_cells_have_line_breaks_is_a_row_with_its_number() -> None:
    found = read(Path("bills.csv"), RECORDS.encode())
    assert found.text == (
        "| bill | note | state |\n| --- | --- | --- |\n| 1 | late, and torn | open |\n"
        '| 2 |  | paid |\n| 3 | a "new" one | open |\n'
    )
    assert found.places == [(1, "row 1"), (3, "row 2"), (4, "row 4"), (5, "row 5")]
    assert found.title == "bills.csv"


def test_a_title_and_notes_above_the_header_are_paragraphs() -> None:
    found = read(Path("bills.csv"), f'"Until:","31 March"\nAll bills,,\n\n{RECORDS}'.encode())
    assert found.text.startswith("Until: 31 March\n\nAll bills\n\n| bill | note | state |\n| --- |")
    assert found.places[:4] == [(1, "row 1"), (3, "row 2"), (5, "row 4"), (7, "row 5")]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ('a,b\u2028c,d\nx,"y\nz",w\n', "| x | y z | w |"),
        ('a,b\fc,d\nx,"y\nz",w\n', "| x | y z | w |"),
        (f'a,b\nx,"{"oak " * 2_500}"\nx,"y\nz"\n', "| x | y z |"),
        ('a|b\nx|"y\nz, w"\n', "| x | y z, w |"),
        ('day;sum;who\nMay;1,5;"Ida\nKay"\nMay;2,5;Max\n', "| May | 1,5 | Ida Kay |"),
    ],
    ids=["a line separator", "a form feed", "a long cell", "bars", "decimal commas"],
)
def test_rows_and_header_are_cut_alike(text: str, row: str) -> None:
    found = read(Path("a.csv"), text.encode())
    assert row in found.text.splitlines()
    assert found.text.splitlines()[1].startswith("| --- |")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", 'bill,note\n1,"late, torn"\n'),
        ("a.csv", 'pipe,size\n1,2"\n2,3"\n3,4"\n'),
        ("a.csv", 'bill,note\n1,"late\n2,paid\n'),
        ("a.csv", 'Alone "here\nor there"\n'),
        ("a.txt", RECORDS),
        ("a.csv", f'"{"oak " * 2_500}",b\n1,"late,\nand torn"\n'),
        ("a.tsv", '"'),
    ],
)
def test_other_files_keep_their_lines(name: str, text: str) -> None:
    assert module_of(Path(name), text.encode()) == "text"
    assert read(Path(name), text.encode()).text == text


def test_a_file_that_is_too_long_for_a_table_keeps_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_table, "MAX_CHARACTERS", len(RECORDS) - 1)
    assert module_of(Path("a.csv"), RECORDS.encode()) == "text"
