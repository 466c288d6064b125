"""The rows and cells of tables on a page."""

from __future__ import annotations

from ragmemory.files.formats.page_tables import undivided
from tests.support.printed import WIDTH, Line, rows, text_of


def test_a_header_and_a_single_row_are_a_table_if_there_are_several_columns() -> None:
    columns = (50, 200, 350, 450)
    found = text_of(
        *rows(("Meter", "Before", "Now", "Used"), ("S83", "18511", "18769", "258 kWh"), columns=columns)
    )
    assert found is not None
    assert found.strip().split("\n")[::2] == [
        "| Meter | Before | Now | Used |",
        "| S83 | 18511 | 18769 | 258 kWh |",
    ]
    assert text_of(*rows(("10", "if", "so"), ("11", "do", "it"))) is None
    assert text_of(*rows(("Leipzig", "4 March"), ("Landlord", "Tenant"))) is None


def test_narrow_gaps_separate_the_columns_of_a_table_that_others_reveal() -> None:
    body = [
        ("Iron", "   9", "g/l", "13-150"),
        ("Zinc", "  12", "mg/l", "9-18"),
        ("Salt", "1.25", "g/l", "1-2"),
    ]
    table = [("Test", "Size", "Unit", "Limits"), *body]
    lines = rows(*table, columns=(50, 200, 227, 350))
    found = text_of(
        *[(left + 5 * (len(text) - len(text.lstrip())), line, text.lstrip()) for left, line, text in lines]
    )
    assert found is not None
    assert found.startswith("\n| Test | Size | Unit | Limits |\n")
    assert "| Zinc | 12 | mg/l | 9-18 |\n" in found


def test_the_lines_of_a_cell_belong_together_and_a_row_without_a_first_cell_does_not() -> None:
    table = rows(
        *(("Kind", "Use", "Price"), ("Green", "for the morning", "3"), ("", "and the noon", "")),
        *(("Black", "for guests", "5"), ("", "for the cold", "6")),
    )
    found = text_of(*table)
    assert found is not None
    assert "| Green | for the morning and the noon | 3 |\n" in found
    assert "| Black | for guests | 5 |\n|  | for the cold | 6 |\n" in found


def test_the_lines_of_a_cell_belong_together_where_the_file_returns_to_its_row() -> None:
    def cells(row: float, *columns: tuple[str, ...]) -> list[Line]:
        return [
            (left, row + number, line)
            for left, lines in zip((50, 200, 400), columns, strict=True)
            for number, line in enumerate(lines)
        ]

    found = text_of(
        *cells(0, ("Code",), ("Meaning",), ("Remedy",)),
        *cells(1.3, ("E15",), ("Water in the", "base tray"), ("Close the tap", "and call us")),
        *cells(3.6, ("E18", "or E19"), ("No water",), ("Open the tap",)),
        *cells(5.9, ("E22",), ("Fil\x02", "ter clogged"), ("Clean it",)),
    )
    assert found is not None
    assert "| E15 | Water in the base tray | Close the tap and call us |\n" in found
    assert "| E18 or E19 | No water | Open the tap |\n" in found
    assert "| E22 | Filter clogged | Clean it |\n" in found
    header = [
        cells(0, ("NIC", "letter"), ("Earnings at", "limit"), ("Earnings", "above")),
        cells(2.2, ("A",), ("6",), ("7",)),
    ]
    found = text_of(*header[0], *header[1], *cells(3.4, ("B",), ("8",), ("9",)))
    assert found is not None
    assert found.startswith("\n| NIC letter | Earnings at limit | Earnings above |\n")


def test_a_line_that_the_file_holds_below_its_row_is_a_row_of_its_own() -> None:
    found = text_of(*rows(("Kind", "Use"), ("Black", "at noon"), ("Green", "at six")), (200, 4, "at night"))
    assert found is not None
    assert found.endswith("| Green | at six |\n|  | at night |\n\n")


def test_the_cells_of_columns_that_the_file_holds_one_after_the_other_are_not_joined() -> None:
    table = rows(("Kind", "Time", ""), ("Green", "3", "a"), ("Black", "", ""), ("White", "5", "b"))
    found = text_of(*sorted(table, key=lambda line: line[0]))
    assert found is not None
    assert "| Green | 3 | a |\n| Black |  |  |\n| White | 5 | b |\n" in found
    # Below each heading.
    kinds, times = ("Green", "Black", "White"), ("3", "5", "2")
    parts: list[Line] = []
    for first in (0.0, 7.8):
        parts += [(200, first, "A heading")]
        parts += [(50, first + 2.2 + 1.7 * number, text) for number, text in enumerate(kinds)]
        parts += [(200, first + 2.2 + 1.7 * number, text) for number, text in enumerate(times)]
    found = text_of(*parts)
    assert found is not None
    assert "| Green | 3 |\n| Black | 5 |\n| White | 2 |\n" in found


def test_the_lines_of_a_cell_may_be_far_apart_as_some_fonts_have_low_boxes() -> None:
    cells = [(50.0, 2.0, "Things away"), (50.0, 3.7, "from home"), (200.0, 2.0, "4,000"), (350.0, 2.0, "100")]
    found = text_of(*rows(("Section", "Limit", "Excess")), *cells, *rows(("Cycles", "800", "50"), first=5.7))
    assert found is not None
    assert "| Things away from home | 4,000 | 100 |\n" in found


def test_the_sums_below_a_table_are_rows_of_their_own() -> None:
    table = rows(
        *(("1", "Boards", "2", "6,870.00 EUR"), ("", "", "Subtotal", "6,870.00 EUR")),
        *(("", "", "VAT 19 %", "1,305.30 EUR"), ("", "", "Total", "8,175.30 EUR")),
        columns=(50, 100, 250, 350),
    )
    found = text_of(*table)
    assert found is not None
    assert "|  |  | VAT 19 % | 1,305.30 EUR |\n|  |  | Total | 8,175.30 EUR |\n" in found


def test_a_table_that_the_file_holds_column_by_column_is_read_by_rows() -> None:
    table = rows(("Kind", "Minutes"), ("Green", "3"), ("Black", "5"))
    found = text_of(*sorted(table, key=lambda line: line[0]))
    assert found == "\n| Kind | Minutes |\n| --- | --- |\n| Green | 3 |\n| Black | 5 |\n\n"


def test_a_narrow_gap_in_a_few_rows_separates_no_columns() -> None:
    body = [("Iron", "9", "", "13"), ("Zinc", "8", "", "18"), ("Salt", "1", "", "2"), ("Lead", "4", "", "9")]
    units = [("Gold", "1", "g", "2"), ("Lime", "2", "l", "0")]
    found = text_of(*rows(*body, *units, columns=(50, 200, 213, 350)))
    assert found is not None
    assert "| Lead | 4 | 9 |\n| Gold | 1 g | 2 |\n| Lime | 2 l | 0 |\n" in found


def test_narrow_gaps_within_the_cells_of_a_table_do_not_hide_it() -> None:
    words = ("A kind", "of tea", "as told", "by us")
    gaps = [len(word) * WIDTH + 58 for word in words]
    found = text_of(
        *(
            cell
            for line, (word, left) in enumerate(zip(words, gaps, strict=True))
            for cell in ((50.0, line, word), (left, line, "of it"), (200.0, line, str(line)))
        )
    )
    assert found is not None
    assert found.count("\n| ---") == 1
    assert found.endswith(" | 3 |\n\n")


def test_lines_that_end_with_the_hyphen_of_a_browser_are_joined() -> None:
    assert (
        undivided("An informa‐\ntion of the Gas‐\nUnion, 2‐\nor 3.")
        == "An information of the Gas-Union, 2‐\nor 3."
    )
