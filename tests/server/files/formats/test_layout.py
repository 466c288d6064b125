"""The reading order of a page."""

from __future__ import annotations

import os

from ragmemory.files.formats.layout import arranged, crossings
from ragmemory.files.formats.page_columns import Box
from tests.support.printed import HEIGHT, WIDTH, Line, characters, rows, text_of

LEFT = [f"The left column tells of tea no. {number}," for number in range(6)]
RIGHT = [f"the right one of the cups, pot {number}." for number in range(6)]


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


def test_a_line_directly_below_a_table_that_crosses_its_columns_is_no_cell() -> None:
    lines = [(str(number), f"Board {number},", "2", "30.00 EUR") for number in range(6)]
    table = rows(*(row for line in lines for row in (line, ("", "oak"))), columns=(50, 100, 250, 350))
    found = text_of(*table, (50, 12, "Net total: 180.00 EUR"))
    assert found is not None
    assert found.endswith("| 5 | Board 5, oak | 2 | 30.00 EUR |\n\nNet total: 180.00 EUR\n")


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


def test_lists_numbered_lines_and_marginal_notes_are_not_tables() -> None:
    for mark in ("•", "1.", "(a)", "–"):
        assert text_of(*rows(*[(mark, "Boil it")] * 4, columns=(50, 80))) is None
    assert text_of(*rows(*[("12", "The court heard the case in May")] * 4, columns=(50, 80))) is None
    long = "A line of the text that goes on to the right margin of the page, as all do"
    noted = rows((long,), (long, "see p. 3"), (long,), (long, "and p. 4"), (long, "p. 5"), (long,), (long,))
    assert text_of(*[(left if left == 50 else 500, line, text) for left, line, text in noted]) is None


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
