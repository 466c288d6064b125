"""Columns and tables of a page.

Covers `page_columns` and `page_tables`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from ragmemory.files.formats.layout import arranged, crossings
from ragmemory.files.formats.page_columns import Box
from ragmemory.files.formats.page_tables import undivided

HEIGHT = 10.0
WIDTH = 5.0  # of a character
# Where a line begins, the number of the line from the top, and its text.
Line: TypeAlias = tuple[float, float, str]

LEFT = [f"The left column tells of tea no. {number}," for number in range(6)]
RIGHT = [f"the right one of the cups, pot {number}." for number in range(6)]


def characters(lines: Iterable[Line], space: float = 0) -> Iterator[tuple[str, Box]]:
    """Lines of characters; with `space`, the width of spaces of the file, others have no box."""
    for left, line, text in lines:
        bottom = 800 - line * 12
        for at, character in enumerate(text):
            start = left + at * WIDTH
            width = space if character == " " else WIDTH
            yield character, Box(start, bottom, start + width, bottom + HEIGHT)
        yield "\n", Box(0, 0, 0, 0)


def text_of(*lines: Line) -> str | None:
    return arranged(list(characters(lines)))[0]


def rows(
    *lines: tuple[str, ...], first: float = 0, columns: tuple[float, ...] = (50, 200, 350)
) -> list[Line]:
    return [
        (left, first + number, cell)
        for number, cells in enumerate(lines)
        for left, cell in zip(columns, cells, strict=False)
        if cell
    ]


def test_columns_whose_lines_alternate_in_the_file_are_put_one_after_another() -> None:
    lines = [(50.0, -3.0, "A title above both of the columns, and longer than any of them alone")]
    for number, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True)):
        lines += [(50, number, left), (300, number, right)]
    assert text_of(*lines) == "\n".join([lines[0][2], *LEFT, *RIGHT, ""])


def test_columns_in_their_order_stay_as_they_are() -> None:
    left = [(50.0, number, line) for number, line in enumerate(LEFT)]
    right = [(300.0, number, line) for number, line in enumerate(RIGHT)]
    assert text_of(*left, *right) is None


def test_the_number_of_a_heading_below_indented_text_is_no_column() -> None:
    left = [(70.0, number, f"An abstract tells of tea {number}.") for number in range(10)]
    heading = [(50.0, 10.0, "1"), (80.0, 10.0, "Introduction")]
    right = [(300.0, number, f"the right one of the cups, pot {number}.") for number in range(11)]
    assert text_of(*left, *heading, *right) is None


def justified(left: float, line: int, text: str, width: int = 42) -> list[Line]:
    """The words of a line, spread over the width of a column."""
    words = text.split()
    gap = (width - len("".join(words))) / (len(words) - 1)
    starts = [sum(map(len, words[:number])) + number * gap for number in range(len(words))]
    return [(left + start * WIDTH, line, word) for start, word in zip(starts, words, strict=True)]


def test_the_gaps_of_justified_lines_do_not_make_columns_or_tables() -> None:
    gaps = [
        "uncooperative representatives",
        "acknowledged responsibilities",
        "for characteristic arrangements",
    ]
    body = ["and for all of the guests who come in now", *gaps, "for which there is tea in the hall at four"]
    lines = [
        word
        for left, first in ((50, 1), (300, 0))
        for number, text in enumerate(body * 2)
        for word in justified(left, first + number, text)
    ]
    assert arranged(list(characters(lines))) == (None, 0)
    assert text_of(*lines[: len(lines) // 2]) is None


def test_the_cells_of_a_table_in_one_of_the_columns_are_kept() -> None:
    cells = rows(("Kind", "Min"), ("Green", "3"), ("Black", "5"), first=6, columns=(300, 400))
    left = [(50.0, number, f"It goes on with line no. {number} here,") for number in range(9)]
    right = [(300.0, number, line) for number, line in enumerate(RIGHT)]
    found = text_of(*left, *right, *cells)
    assert found is not None
    assert found.startswith("\n".join(line for _, _, line in (*left, *right)))
    assert "| Kind | Min |\n| --- | --- |\n| Green | 3 |\n| Black | 5 |\n" in found


def test_the_rows_of_a_table_are_rows_of_markdown_and_the_text_around_it_stays() -> None:
    found = text_of(
        (50, -4, "What tea costs, and how long it takes:"),
        *rows(("Kind", "Minutes", "Price"), ("Green", "3", ""), ("Black", "5", "4.50")),
        (50, 6, "All prices in euros."),
    )
    assert found == (
        "What tea costs, and how long it takes:\n\n"
        "| Kind | Minutes | Price |\n| --- | --- | --- |\n| Green | 3 |  |\n| Black | 5 | 4.50 |\n\n"
        "All prices in euros.\n"
    )


def test_a_table_is_apart_from_lines_above_and_below_that_cross_its_columns() -> None:
    found = text_of(
        *[(50, 0, "Laboratory"), (400, 0, "Report 88")],
        (50, 1.4, "Patient: a name that is longer than the first column"),
        *rows(("Test", "Result", "Limits"), ("Iron", "9", "13-150"), ("Zinc", "12", "9-18"), first=3),
        (50, 6.4, "Comment: a remark that is longer than the first column"),
    )
    table = "| Test | Result | Limits |\n| --- | --- | --- |\n| Iron | 9 | 13-150 |\n| Zinc | 12 | 9-18 |\n"
    assert found is not None
    assert table in found
    assert found.endswith("\n\nComment: a remark that is longer than the first column\n")


def test_the_lines_of_a_table_of_contents_stay_as_they_are() -> None:
    chapters = rows(*[(f"3.{number}", "Duties . . . . . . 9") for number in range(2)], columns=(50, 80))
    sections = rows(*[(f"3.1.{number}", "A task . . . . 10") for number in range(3)], columns=(80, 120))
    lines = [*chapters, *[(left, 2 + line, text) for left, line, text in sections]]
    assert text_of(*lines, *[(left, 5 + line, text) for left, line, text in lines]) is None


def test_the_header_of_a_column_with_few_cells_is_not_part_of_the_one_next_to_it() -> None:
    body = [(f"{day} May", f"{day}.50", "", f"{day}00.10") for day in range(10, 32)]
    found = text_of(*rows(("Date", "Out", "In", "Balance"), *body, columns=(50, 150, 250, 350)))
    assert found is not None
    assert found.startswith("\n| Date | Out | In | Balance |\n")
    assert "\n| 31 May | 31.50 |  | 3100.10 |\n" in found


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


def test_labels_above_their_values_in_boxes_of_several_widths_are_tables() -> None:
    personal = [
        ("Number", "Born", "Class", "Child", "Faith", "Since"),
        ("10442", "17.03.81", "3", "1,0", "-", "01.09.16"),
    ]
    insured = [
        ("Number", "Insurance", "Tax no.", "Days left"),
        ("65 170381 M 8", "A fund of the North", "48 221 907", "17"),
    ]
    found = text_of(
        *rows(*personal, columns=(52, 134, 216, 298, 380, 462)),
        *rows(*insured, first=2, columns=(52, 175, 298, 421)),
    )
    assert found is not None
    for line in (*personal, *insured):
        assert f"| {' | '.join(line)} |\n" in found


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


def test_a_gap_may_be_narrow_where_the_spaces_of_the_file_are_characters() -> None:
    """Only a gap without a space: a wide one is of justified text."""
    cells = rows(
        ("A tea", "Time", "Heat"),
        ("Green", "3 min", "70 C"),
        ("Black", "5 min", "90 C"),
        columns=(50, 82, 114),
    )
    found = arranged(list(characters(cells, WIDTH)))[0]
    assert found is not None
    assert found.endswith("| Green | 3 min | 70 C |\n| Black | 5 min | 90 C |\n\n")
    assert text_of(*cells) is None
    spaced = [(left, line, f"{text} ") for left, line, text in cells]
    assert arranged(list(characters(spaced, WIDTH)))[0] is None


def test_clauses_and_indented_lines_with_their_numbers_are_not_tables() -> None:
    clauses = [("§ 2", "Time of the lease"), ("(1)", "It begins in June."), ("(2)", "It may be ended.")]
    assert text_of(*rows(*clauses, columns=(50, 90))) is None
    code = [
        ("10", "if so:", ""),
        ("11", "", "then do that, and that again"),
        ("12", "", "or else that, in the end"),
        ("13", "else", ""),
    ]
    assert text_of(*rows(*code, columns=(50, 90, 180))) is None


def test_blocks_next_to_each_other_whose_lines_are_not_level_stay_apart() -> None:
    address = [
        (50.0, number, line) for number, line in enumerate(("Mrs Marsh", "14 Orchard Lane", "Northfield"))
    ]
    labels = rows(
        *[("Customer", "4471"), ("Invoice", "NE-118"), ("Date", "4 March"), ("Due", "18 March")],
        columns=(350, 450),
        first=0.4,
    )
    found = text_of(*address, *[(left, line * 1.3, text) for left, line, text in labels])
    assert found is not None
    assert found.startswith("Mrs Marsh\n14 Orchard Lane\nNorthfield\n\n| Customer | 4471 |\n")
    # All lines of one side are a bit higher.
    date = rows(
        ("Customer", "4471"), ("Invoice", "NE-118"), ("Date", "4 March"), columns=(350, 450), first=-0.3
    )
    found = text_of(*address, *date)
    assert found is not None
    assert found.startswith("Mrs Marsh\n14 Orchard Lane\nNorthfield\n\n| Customer | 4471 |\n")
    # Two columns in their order, of which one is short.
    left = [(50.0, number, f"Skill {number}") for number in range(6)]
    right = [(200.0, 1.15 * number, f"Planned the lines of plant {number}") for number in range(6)]
    assert text_of(*left, *right) is None


def test_a_block_next_to_a_table_stays_apart_if_a_few_of_their_lines_are_level() -> None:
    address = [
        (50.0, number, line) for number, line in enumerate(("Mrs Marsh", "14 Orchard Lane", "Northfield"))
    ]
    policy = [
        (250, 0, "Policy"),
        (250, 1, "number"),
        (400, 0, "HC-7730"),
        (250, 2.4, "Phone"),
        (400, 2.4, "0330"),
    ]
    assert text_of(*address, *policy, (250, 3.8, "Date"), (400, 3.8, "4 March")) == (
        "Mrs Marsh\n14 Orchard Lane\nNorthfield\n\n| Policy number | HC-7730 |\n| --- | --- |\n"
        "| Phone | 0330 |\n| Date | 4 March |\n\n"
    )


def test_a_line_next_to_a_table_that_is_not_level_with_a_row_is_none_of_its_cells() -> None:
    cells = rows(("Kind", "Minutes"), ("Green", "3"), ("Black", "5"), columns=(250, 400))
    assert text_of((50, 0.6, "To be kept dry"), *cells) == (
        "To be kept dry\n\n| Kind | Minutes |\n| --- | --- |\n| Green | 3 |\n| Black | 5 |\n\n"
    )


def test_values_of_a_form_that_are_a_bit_higher_than_their_labels_stand_with_them() -> None:
    names = ("Name", "Street", "IBAN")
    labels = [(50.0, 2.0 * number, name) for number, name in enumerate(names)]
    values = [(200.0, 2.0 * number - 0.3, f"the {name}") for number, name in enumerate(names)]
    assert text_of(*labels, *values) == (
        "\n| Name | the Name |\n| --- | --- |\n| Street | the Street |\n| IBAN | the IBAN |\n\n"
    )


def test_the_letters_of_a_ligature_which_share_a_wide_box_stay_in_their_word() -> None:
    table = rows(("Kind", "Use"), ("Green", "off duty"), ("Black", "at ease"), columns=(50, 200))
    found = list(characters(table))
    for at in [at for at, (character, _) in enumerate(found) if character == "f"]:
        found[at] = "f", Box(205, 788, 217, 798)
    text = arranged(found)[0]
    assert text is not None
    assert "| Green | off duty |\n" in text


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


def test_a_line_directly_below_a_table_that_crosses_its_columns_is_no_cell() -> None:
    lines = [(str(number), f"Board {number},", "2", "30.00 EUR") for number in range(6)]
    table = rows(*(row for line in lines for row in (line, ("", "oak"))), columns=(50, 100, 250, 350))
    found = text_of(*table, (50, 12, "Net total: 180.00 EUR"))
    assert found is not None
    assert found.endswith("| 5 | Board 5, oak | 2 | 30.00 EUR |\n\nNet total: 180.00 EUR\n")


def test_a_table_that_the_file_holds_column_by_column_is_read_by_rows() -> None:
    table = rows(("Kind", "Minutes"), ("Green", "3"), ("Black", "5"))
    found = text_of(*sorted(table, key=lambda line: line[0]))
    assert found == "\n| Kind | Minutes |\n| --- | --- |\n| Green | 3 |\n| Black | 5 |\n\n"


def test_a_heading_over_several_columns_does_not_hide_them() -> None:
    body = [("tea", str(number), "euros") for number in range(12)]
    found = text_of((180, 0, "Prices of all kinds, year by year"), *rows(("Kind", "", ""), *body))
    assert found is not None
    assert found.count("| tea | ") == 12


def test_a_heading_between_the_rows_of_a_table_does_not_divide_it() -> None:
    body = [("tea", str(number), "euros") for number in range(16)]
    heading = (60, 10, "Prices of all kinds, year by year")
    found = text_of(*rows(*body[:10]), heading, *rows(*body[10:], first=11))
    assert found is not None
    assert found.count("\n| ---") == 1
    assert found.count("| tea |") == 16


def test_a_group_of_rows_that_is_farther_from_the_others_is_in_their_table() -> None:
    found = text_of(
        *rows(("Kind", "Minutes"), ("Green", "3"), ("Mint", "4")),
        (50, 3.6, "Only for guests"),
        *rows(("Black", "5"), ("White", "2"), first=4.6),
    )
    assert found is not None
    assert found.count("\n| ---") == 1
    assert "| Only for guests |  |\n| Black | 5 |\n" in found


def test_a_table_with_long_cells_is_not_a_text_with_notes() -> None:
    long = "Close the tap, turn the machine to its side and call us in the morning"
    found = text_of(*rows(*[(f"E{number}", long) for number in range(3)]))
    assert found is not None
    assert f"| E1 | {long} |\n| E2 | {long} |\n" in found


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


def test_lists_numbered_lines_and_marginal_notes_are_not_tables() -> None:
    for mark in ("•", "1.", "(a)", "–"):
        assert text_of(*rows(*[(mark, "Boil it")] * 4, columns=(50, 80))) is None
    assert text_of(*rows(*[("12", "The court heard the case in May")] * 4, columns=(50, 80))) is None
    long = "A line of the text that goes on to the right margin of the page, as all do"
    noted = rows((long,), (long, "see p. 3"), (long,), (long, "and p. 4"), (long, "p. 5"), (long,), (long,))
    assert text_of(*[(left if left == 50 else 500, line, text) for left, line, text in noted]) is None


def test_text_that_runs_up_the_margin_is_in_no_row() -> None:
    margin = [(20.0, number, letter) for number, letter in enumerate("upward")]
    found = text_of(*margin, *rows(("Kind", "Minutes"), ("Green", "3"), ("Black", "5")))
    assert found is not None
    assert found.startswith("u\np\nw\na\nr\nd\n\n| Kind | Minutes |\n")


def test_crossings_are_counted_at_gaps_and_where_the_text_continues_to_the_right() -> None:
    def box(left: float, bottom: float) -> Box:
        return Box(left, bottom, left + 50, bottom + HEIGHT)

    assert crossings([box(0, 50), box(0, 30), box(0, 10)]) == 0
    assert crossings([box(0, 50), box(100, 50), box(0, 30), box(100, 30)]) == 2
    assert crossings([box(0, 50), box(0, 30), box(100, 50)]) == 1


def test_a_row_of_many_parts_takes_no_longer_than_it_must() -> None:
    spent = os.times().user
    assert text_of(*((number * 30.0, 0, "x") for number in range(20_000))) is None
    assert os.times().user - spent < 3


def test_columns_that_the_file_holds_one_after_the_other_take_no_longer_than_rows() -> None:
    columns = [(30.0 * number, line, "ab") for number in range(49) for line in range(200)]
    spent = os.times().user
    assert text_of(*columns) is not None
    assert os.times().user - spent < 6


def test_a_page_of_words_in_places_of_their_own_takes_no_longer_than_a_table() -> None:
    words = [(20.0 * (number + 300 * column), number, "x") for number in range(300) for column in range(49)]
    spent = os.times().user
    assert text_of(*words) is None
    assert os.times().user - spent < 10


def test_lines_that_end_with_the_hyphen_of_a_browser_are_joined() -> None:
    assert (
        undivided("An informa‐\ntion of the Gas‐\nUnion, 2‐\nor 3.")
        == "An information of the Gas-Union, 2‐\nor 3."
    )
