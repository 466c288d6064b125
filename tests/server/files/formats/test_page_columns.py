"""The parts of a page: segments, rows and the gutters between columns."""

from __future__ import annotations

from ragmemory.files.formats.layout import arranged
from ragmemory.files.formats.page_columns import Box
from tests.support.printed import WIDTH, characters, rows, text_of


def test_the_header_of_a_column_with_few_cells_is_not_part_of_the_one_next_to_it() -> None:
    body = [(f"{day} May", f"{day}.50", "", f"{day}00.10") for day in range(10, 32)]
    found = text_of(*rows(("Date", "Out", "In", "Balance"), *body, columns=(50, 150, 250, 350)))
    assert found is not None
    assert found.startswith("\n| Date | Out | In | Balance |\n")
    assert "\n| 31 May | 31.50 |  | 3100.10 |\n" in found


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


def test_the_letters_of_a_ligature_which_share_a_wide_box_stay_in_their_word() -> None:
    table = rows(("Kind", "Use"), ("Green", "off duty"), ("Black", "at ease"), columns=(50, 200))
    found = list(characters(table))
    for at in [at for at, (character, _) in enumerate(found) if character == "f"]:
        found[at] = "f", Box(205, 788, 217, 798)
    text = arranged(found)[0]
    assert text is not None
    assert "| Green | off duty |\n" in text


def test_a_heading_over_several_columns_does_not_hide_them() -> None:
    body = [("tea", str(number), "euros") for number in range(12)]
    found = text_of((180, 0, "Prices of all kinds, year by year"), *rows(("Kind", "", ""), *body))
    assert found is not None
    assert found.count("| tea | ") == 12


def test_text_that_runs_up_the_margin_is_in_no_row() -> None:
    margin = [(20.0, number, letter) for number, letter in enumerate("upward")]
    found = text_of(*margin, *rows(("Kind", "Minutes"), ("Green", "3"), ("Black", "5")))
    assert found is not None
    assert found.startswith("u\np\nw\na\nr\nd\n\n| Kind | Minutes |\n")


def test_slanted_text_is_part_of_no_line_and_out_of_no_order() -> None:
    table = list(characters(rows(("Kind", "Minutes"), ("Green", "3"), ("Black", "5"))))
    end = "".join(character for character, _ in table).index("\n", 13)
    slanted = [
        (letter, Box(76 + 9 * at, 790 + 9 * at, 84 + 9 * at, 790 + 9 * at))
        for at, letter in enumerate("copy")
    ]
    text, unknown = arranged([*table[:end], *slanted, *table[end:]])
    assert text is not None
    assert "| Green | 3 |\n| Black | 5 |\n" in text
    assert "copy" in text
    assert unknown == 0
