"""Word documents.

Covers `office`.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from ragconfig.files.decoding import NotText
from ragmemory.files.formats.docx import read
from tests.support.documents import archive

docx = pytest.importorskip("docx", reason="the extra `office` is not installed")

FILE = Path("a.docx")


def made() -> bytes:
    document = docx.Document()
    document.add_heading("Brewing tea", 0)
    document.add_heading("Water", 1)
    document.add_paragraph("Boil it.")
    document.add_paragraph("green", style="List Bullet")
    document.add_paragraph("black", style="List Bullet")
    grid = document.add_table(2, 2)
    for cell, text in zip(grid._cells, ("Kind", "Minutes", "Green", "3"), strict=True):
        cell.text = text
    document.add_paragraph("After the table.")
    buffer = BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def test_headings_lists_and_tables_are_read_in_their_order() -> None:
    found = read(FILE, made())
    assert found.text == (
        "# Brewing tea\n\n# Water\n\nBoil it.\n\n- green\n- black\n\n"
        "| Kind | Minutes |\n| --- | --- |\n| Green | 3 |\n\nAfter the table.\n"
    )
    assert found.media_type == "text/markdown"


@pytest.mark.parametrize("data", [b"PK", made()[:2000], archive({"word/document.xml": "<x/>"}), archive({})])
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(NotText, match="is a damaged Word file"):
        read(FILE, data)
