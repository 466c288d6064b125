"""Presentations."""

from __future__ import annotations

import os
from copy import deepcopy
from io import BytesIO
from pathlib import Path

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.pptx import read
from tests.support.documents import archive

pptx = pytest.importorskip("pptx", reason="the extra `office` is not installed")

FILE = Path("a.pptx")


def made() -> bytes:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = "Tea"
    slide.placeholders[1].text = "green\nblack"
    slide.notes_slide.notes_text_frame.text = "Speak slowly."
    second = presentation.slides.add_slide(presentation.slide_layouts[5])
    second.shapes.title.text = "Times"
    grid = second.shapes.add_table(2, 2, 0, 0, 100, 100).table
    for row, texts in zip(grid.rows, (("Kind", "Minutes"), ("Green", "3")), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    buffer = BytesIO()
    presentation.save(buffer)
    return buffer.getvalue()


def test_the_places_are_the_slides() -> None:
    found = read(FILE, made())
    assert found.text == (
        "# Tea\n\n- green\n- black\n\nNotes: Speak slowly.\n\n"
        "# Times\n\n| Kind | Minutes |\n| --- | --- |\n| Green | 3 |\n"
    )
    assert found.places == [(1, "slide 1"), (8, "slide 2")]
    assert found.title == "Tea"


@pytest.mark.parametrize("data", [b"PK", archive({"ppt/presentation.xml": "<x/>"})])
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(NotText, match="is a damaged PowerPoint file"):
        read(FILE, data)


def test_a_table_of_many_rows_takes_no_longer_than_it_must() -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    grid = slide.shapes.add_table(1, 1, 0, 0, 9, 9).table
    grid.cell(0, 0).text = "x"
    (row,) = grid._tbl.tr_lst
    for _ in range(4_000):
        grid._tbl.append(deepcopy(row))
    buffer = BytesIO()
    presentation.save(buffer)
    spent = os.times().user
    assert read(Path("a.pptx"), buffer.getvalue()).text.count("| x |") == 4_001
    assert os.times().user - spent < 3
