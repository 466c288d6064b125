"""PDF: the text of each page."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragconfig.files.decoding import NotText
from ragmemory.files.formats import pdf as module
from ragmemory.files.formats.pdf import read
from tests.support.documents import pdf

pytest.importorskip("pypdfium2", reason="the extra `pdf` is not installed")

PAPER = Path("paper.pdf")


def test_each_page_is_a_place() -> None:
    paper = read(PAPER, pdf(["Tea is (very) good.\nIt grows.", "The second page."], title="On tea"))
    assert paper.text == "Tea is (very) good.\nIt grows.\n\nThe second page.\n"
    assert paper.places == [(1, "p. 1"), (4, "p. 2")]
    assert (paper.title, paper.note) == ("On tea", "")


def test_a_word_divided_at_the_end_of_a_line_is_joined() -> None:
    assert read(PAPER, pdf(["An infor-\nmation."])).text == "An information.\n"


def test_pages_without_text_are_named() -> None:
    paper = read(PAPER, pdf(["One.", "", "", "Four.", ""]))
    assert paper.note == "has no text on p. 2–3, 5, which may be scanned"
    assert paper.places == [(1, "p. 1"), (3, "p. 4")]
    assert paper.title == "paper.pdf"


def test_only_so_many_pages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PAGES", 2)
    paper = read(PAPER, pdf(["One.", "Two.", "Three."]))
    assert paper.text == "One.\n\nTwo.\n"
    assert paper.note == "only the first 2 of its 3 pages were read"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pdf(["", ""]), "has no text on any page: it may be scanned"),
        (b"no PDF", "is a damaged PDF file, or not one at all"),
        (pdf(["One."])[:60], "is a damaged PDF file, or not one at all"),
        (pdf(["One."], is_encrypted=True), "is encrypted with a password"),
    ],
)
def test_a_file_without_text_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(NotText, match=reason):
        read(PAPER, data)
