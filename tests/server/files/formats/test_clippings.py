"""Highlights and notes of a Kindle."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcommon.files.decoding import NoText
from ragmemory.files.formats import detection


def clipping(book: str, place: str, text: str) -> str:
    lines = (
        f"\ufeff{book}",
        f"- {place} | Added on Sunday, 1 January 2023 10:00:00",
        "",
        text,
        "==========",
        "",
    )
    return "\r\n".join(lines)


def test_highlights_are_below_their_books_with_their_places() -> None:
    clips = (
        ("Walden (Thoreau)", "Your Highlight on page 9", "I went to the woods."),
        ("Range (Epstein)", "Ihre Notiz auf Seite 4", "# try this\r\nsoon"),
        ("Range (Epstein)", "Your Bookmark on page 5", ""),
        ("Walden (Thoreau)", "Your Highlight on page 12", "Simplify."),
    )
    found = detection.read(Path("My Clippings.txt"), "".join(clipping(*one) for one in clips).encode())
    added = " | Added on Sunday, 1 January 2023 10:00:00\n"
    assert found.text == (
        f"# Walden (Thoreau)\n\nI went to the woods.\n\nYour Highlight on page 9{added}\n"
        f"Simplify.\n\nYour Highlight on page 12{added}\n"
        f"# Range (Epstein)\n\n    # try this\nsoon\n\nIhre Notiz auf Seite 4{added}"
    )
    names = {found.text.split("\n")[line - 1]: name for line, name in found.places}
    assert names["I went to the woods."] == "record 1"
    assert names["Simplify."] == "record 4"
    assert names["    # try this"] == "record 2"


def test_what_was_typed_between_the_highlights_is_kept_and_no_fence_takes_in_others() -> None:
    first = clipping("Walden (Thoreau)", "Your Highlight on page 9", "```\r\nI went.")
    typed = "My own remark\r\nwhich I typed below.\r\n==========\r\n"
    last = clipping("Range (Epstein)", "Your Note on page 4", "Soon.").removesuffix("\r\n")
    text = detection.read(Path("My Clippings.txt"), f"{first}{typed}{last}".encode()).text
    assert "```\nI went.\n```\n\nYour Highlight on page 9" in text
    assert "My own remark\nwhich I typed below.\n" in text
    assert "# Range (Epstein)\n\nSoon.\n" in text
    assert "==========" not in text


def test_only_plain_texts_are_clippings() -> None:
    text = clipping("Shopping", "milk", "For Sunday").encode()
    assert detection.module_of(Path("My Clippings.txt"), text) == "clippings"
    assert detection.module_of(Path("shopping.md"), text) == detection.TEXT
    assert detection.module_of(Path("shopping.rst"), text) == "rst"


def test_bookmarks_alone_have_no_text() -> None:
    marked = clipping("Walden (Thoreau)", "Your Bookmark on page 5", "")
    with pytest.raises(NoText):
        detection.read(Path("My Clippings.txt"), marked.encode())


@pytest.mark.parametrize("text", ["Title\n- a | b\n\nText\n", "Title\n==========\n- a | b\n\nText\n"])
def test_a_list_below_a_title_is_no_clipping(text: str) -> None:
    assert detection.module_of(Path("notes.txt"), text.encode()) == detection.TEXT
