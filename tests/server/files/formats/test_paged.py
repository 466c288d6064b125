"""Running headers and footers of plain text that was printed in pages."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ragmemory.files.formats.paged import without_page_breaks
from ragmemory.files.formats.text import read

SAID = "   It is written down here."
LINES = 50


def printed(footer: str, header: str = "", *, pages: int = 6, length: int = LINES) -> str:
    """Pages of `length` lines: a header, but for the first, and a footer with the number of the page."""
    return "".join(
        f"{header if number > 7 else ''}\n\n\n"
        + f"{SAID}\n" * (length - 7)
        + f"\n\n{footer.format(number)}\n\n"
        for number in range(7, 7 + pages)
    )


@pytest.mark.parametrize(
    ("footer", "header"),
    [
        ("Ada                Standards Track            [Page {}]", "RFC 1   Kites   May 1998"),
        ("          The Guidebook                                   {}", ""),
        ("{}                  The Guidebook", "Version 3.6        March 8, 2020"),
        ("\fKites                 Page {} of 12", "\f"),
    ],
)
def test_they_become_blank_lines_so_that_all_others_keep_their_numbers(footer: str, header: str) -> None:
    text = printed(footer, header)
    found = without_page_breaks(text)
    assert found.count("\n") == text.count("\n")
    assert {line.strip() for line in found.split("\n")} == {"", SAID.strip()}
    assert [line == SAID for line in found.split("\n")] == [line == SAID for line in text.split("\n")]
    assert read(Path("a.txt"), text.encode()).text == found
    assert read(Path("a.py"), text.encode()).text == text


@pytest.mark.parametrize(
    "text",
    [
        printed("Chapter {}", length=20),  # They are near each other.
        printed("Page {}", pages=4),  # There are few.
        "".join(
            f"Article {n}\n\n" + f"{SAID}\n" * (40 + 7 * n) + "\n\n" for n in range(1, 9)
        ),  # of all lengths
        "".join(
            f"\n\nSensor 7 in 20{n}\n\n" + f"{SAID}\n" * LINES for n in (24, 11, 19, 17, 16, 12)
        ),  # no order
        printed("7" * 5000 + "{}"),  # They are too long.
        "",
    ],
)
def test_other_lines_with_numbers_stay(text: str) -> None:
    assert without_page_breaks(text) == text


def test_a_long_line_full_of_numbers_is_read_in_linear_time() -> None:
    text = "\n\n" + "word 12 " * 12_000 + "\nThe next line.\n"
    began = time.thread_time()
    assert without_page_breaks(text) == text
    # It takes a millisecond; with the square of the length, 15 s.
    assert time.thread_time() - began < 5
