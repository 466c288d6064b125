"""Values of cells as a sheet shows them."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

import pytest

from ragmemory.files.formats import sheets
from ragmemory.files.formats.file_text import TextBuilder, TooMuchText
from ragmemory.files.formats.sheets import MAX_COLUMNS, Sheet, add_sheets, shown


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (None, "", ""),
        (True, "0%", "TRUE"),
        (4.5, "", "4.5"),
        (0.1 + 0.2, "", "0.3"),
        (0.455, "0.0%", "45.5%"),
        (1234, "00000", "01234"),
        (1234.5, "#,##0.00", "1234.50"),
        (1234.5, '#,##0.00 "€";[Red]-#,##0.00 "€"', "1234.50 €"),
        (-3, "#,##0.00\\ [$CHF]", "-3 CHF"),
        (-12, "[$$-409]#,##0_);\\([$$-409]#,##0\\)", "-$12"),
        (7.25, '_-* #,##0.00 "zł"_-;-* #,##0.00 "zł"_-;_-* "-"_-', "7.25 zł"),
        (0.5, '0% "of it"', "50% of it"),
        (6, '0 "x" 0', "6"),
        (5, "##0.00", "5.00"),
        (5, "#0.00", "5.00"),
        (5, "#,#0.00", "5"),
        (5, '0" a; b"', "5 a; b"),
        (5, '0" [red]"', "5 [red]"),
        (5, '0\\;" a"', "5; a"),
        (5, "0.00" + " " * 251, "5.00"),
        (5, "0.00" + " " * 252, "5"),
        (timedelta(hours=41, minutes=15), "[h]:mm", "41:15"),
        (timedelta(seconds=-61), "[h]:mm:ss", "-0:01:01"),
        (datetime(2026, 11, 22), "", "2026-11-22"),
        (datetime(2026, 11, 22, 9, 30), "", "2026-11-22 09:30:00"),
        (date(2026, 11, 22), "", "2026-11-22"),
        (time(9, 5), "", "09:05:00"),
        ("Tea", "0%", "Tea"),
    ],
)
def test_a_value_is_shown_as_in_its_sheet_with_dates_in_iso_8601(
    value: object, number_format: str, text: str
) -> None:
    assert shown(value, number_format) == text


def test_a_cell_that_spans_rows_is_repeated_in_those_with_text() -> None:
    rows = [(1, {0: "Ada", 1: "Bern"}), (2, {1: "Chur"}), (3, {}), (4, {1: "Genf"}), (5, {1: "Thun"})]
    builder = TextBuilder()
    add_sheets([Sheet("S", False, rows, {(1, 0): 4})], builder)
    assert builder.build("").text.splitlines()[2:] == [
        *("| Ada | Bern |", "| --- | --- |", "| Ada | Chur |", "| Ada | Genf |", "|  | Thun |")
    ]


@pytest.mark.parametrize(
    ("first", "tables"),
    [
        (3, ["| Excess | 750 |", "| --- | --- |", "", "| No. | Item | Value |", "| --- | --- | --- |"]),
        (2, ["| Excess | 750 |  |", "| --- | --- | --- |", "| No. | Item | Value |"]),
    ],
    ids=["blank row between", "none"],
)
def test_names_and_values_above_an_empty_row_are_no_header_of_the_table_below(
    first: int, tables: list[str]
) -> None:
    rows = [(1, {0: "Excess", 1: "750"}), (first, {0: "No.", 1: "Item", 2: "Value"}), (4, {0: "7", 2: "9"})]
    builder = TextBuilder()
    add_sheets([Sheet("S", False, rows)], builder)
    assert builder.build("").text.splitlines()[2:] == [*tables, "| 7 |  | 9 |"]


def test_columns_beyond_the_limit_are_left_out_with_a_note() -> None:
    builder = TextBuilder()
    notes = add_sheets([Sheet("S", False, [(1, {0: "a", 1: "b", MAX_COLUMNS: "c"})])], builder)
    assert notes == [f"only its first {MAX_COLUMNS} columns were read"]
    assert builder.build("").text == "# S\n\n| a | b |\n| --- | --- |\n"


def test_rows_with_too_much_text_are_not_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheets, "MAX_CHARACTERS", 100)
    rows = iter([(number, {0: "Tea", 1: "Cups"}) for number in range(1, 1_000)])
    with pytest.raises(TooMuchText):
        add_sheets([Sheet("S", False, rows)], TextBuilder())
    assert next(rows) == (16, {0: "Tea", 1: "Cups"})
