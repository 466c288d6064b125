"""The numbers of list items."""

from __future__ import annotations

import pytest

from ragmemory.files.formats.list_numbers import item, written


@pytest.mark.parametrize(
    ("number", "form", "shown"),
    [
        (3, "1", "3"),
        (3, "01", "03"),
        (12, "01", "12"),
        (1, "a", "a"),
        (26, "A", "Z"),
        (28, "a", "bb"),
        (4, "i", "iv"),
        (149, "I", "CXLIX"),
        (301, "I", "301"),
        (0, "a", "0"),
        (7, "一", "7"),
    ],
)
def test_numbers_are_written_in_their_form(number: int, form: str, shown: str) -> None:
    assert written(number, form) == shown


@pytest.mark.parametrize(
    ("marker", "shown"), [("1.", "1."), ("  2)", "  2)"), ("-", "-"), ("  (a)", "  - (a)"), ("1.2", "- 1.2")]
)
def test_markers_are_those_of_markdown(marker: str, shown: str) -> None:
    assert item(marker) == shown
