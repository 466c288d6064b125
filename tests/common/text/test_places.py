"""Places in a document, and how they are named."""

from __future__ import annotations

import pytest

from ragcommon.text.places import Place, cell_label, file_name, label, location, page_in, with_cell, within

# What Notion adds to names.
ID = "38f3562de9d0faf2a4e15440c91c3a2a"
PAGES: list[Place] = [(1, "p. 1"), (5, "p. 2"), (9, "p. 3")]


def test_lines_are_in_the_places_from_the_last_that_begins_before_them() -> None:
    assert within(PAGES, 5, 8) == [(5, "p. 2")]
    assert within(PAGES, 6, 9) == [(5, "p. 2"), (9, "p. 3")]
    assert within(PAGES, 20, 30) == [(9, "p. 3")]
    assert within([(3, "p. 1")], 1, 2) == []
    assert within([], 1, 2) == []


@pytest.mark.parametrize(
    ("places", "lines", "name"),
    [
        (PAGES, (2, 3), "p. 1"),
        (PAGES, (2, 9), "p. 1–3"),
        ([(1, "sheet Net costs row 1"), (2, "sheet Net costs row 2")], (1, 2), "sheet Net costs rows 1–2"),
        ([(1, "slide 2"), (3, "slide 3")], (1, 4), "slides 2–3"),
        ([(1, "sheet A row 7"), (2, "sheet B row 1")], (1, 2), "sheet A row 7–sheet B row 1"),
        ([(1, "sheet A"), (2, "sheet A row 1"), (4, "sheet A row 2")], (1, 4), "sheet A rows 1–2"),
        ([(1, "sheet A"), (2, "sheet A row 1")], (1, 1), "sheet A"),
        ([(1, "cover"), (2, "end")], (1, 2), "cover–end"),
        ([(1, "p. 1"), (3, "p. 2 (OCR)"), (5, "p. 3 (OCR)")], (3, 5), "p. 2–3 (OCR)"),
        ([(1, "p. 1"), (3, "p. 2 (OCR)"), (5, "p. 3 (OCR)")], (1, 3), "p. 1–2 (OCR)"),
        ([(1, "p. 1"), (3, "p. 2 (OCR)")], (1, 1), "p. 1"),
        ([(1, "(OCR)")], (1, 9), "(OCR)"),
        ([], (1, 2), ""),
    ],
)
def test_the_label_of_a_range_names_what_is_common_once(
    places: list[Place], lines: tuple[int, int], name: str
) -> None:
    assert label(places, *lines) == name


def test_a_location_names_places_and_else_lines() -> None:
    assert location("thesis.pdf", [(6, 6), (2, 3), (6, 7)], PAGES) == "thesis.pdf p. 1, p. 2"
    assert location("notes.md", [(8, 8), (2, 3)], []) == "notes.md:2–3, 8"
    assert location("new\nline.md", [(8, 8)], []) == "new line.md:8"
    assert location(f"Bins {ID}.md", [(8, 8)], []) == f"Bins {ID}.md:8"


def test_the_page_in_a_label_is_its_first() -> None:
    assert page_in("thesis.pdf p. 12–14") == 12
    assert page_in("p. 3") == 3
    assert page_in("chapter 3") is None


def test_a_file_has_its_name_and_a_hash_its_title() -> None:
    assert file_name("file:///my%20papers/th%C3%A9se.pdf") == "thése.pdf"
    assert file_name("sha256:abc", "Tea") == "Tea"
    assert file_name("note:tea") == "note:tea"


@pytest.mark.parametrize(("column", "name"), [(0, "A3"), (25, "Z3"), (26, "AA3"), (702, "AAA3")])
def test_columns_are_named_as_in_a_spreadsheet(column: int, name: str) -> None:
    assert cell_label("Net costs", column, 3) == f"sheet Net costs {name}"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("4.5", "sheet Costs B2"),
        ("Green tea", "sheet Costs A2"),
        (r"a\|b", "sheet Costs C2"),
        ("e", "sheet Costs row 2"),
        ("| Green tea | 4.5 |", "sheet Costs row 2"),
        ("", "sheet Costs row 2"),
    ],
)
def test_a_text_in_one_cell_of_a_row_is_in_that_cell(text: str, name: str) -> None:
    places: list[Place] = [(3, "sheet Costs row 1"), (5, "sheet Costs row 2")]
    assert with_cell(places, 5, r"| Green tea | 4.5 | free a\|b |", text) == [places[0], (5, name)]


def test_a_row_of_another_table_has_no_cells() -> None:
    assert with_cell(PAGES, 5, "| Tea | 4.5 |", "4.5") == PAGES
