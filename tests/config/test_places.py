"""Places in a document, and how they are named."""

from __future__ import annotations

import pytest

from ragconfig.places import Place, file_name, label, location, within

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
        ([(1, "sheet Net costs row 1"), (2, "sheet Net costs row 2")], (1, 2), "sheet Net costs row 1–2"),
        ([(1, "sheet A row 7"), (2, "sheet B row 1")], (1, 2), "sheet A row 7–sheet B row 1"),
        ([(1, "cover"), (2, "end")], (1, 2), "cover–end"),
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


def test_a_file_has_its_name_and_a_hash_its_title() -> None:
    assert file_name("file:///my%20papers/th%C3%A9se.pdf") == "thése.pdf"
    assert file_name("sha256:abc", "Tea") == "Tea"
    assert file_name("note:tea") == "note:tea"
