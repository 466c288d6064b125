"""Presentations."""

from __future__ import annotations

import os
from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

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


def saved(presentation: Any) -> bytes:
    buffer = BytesIO()
    presentation.save(buffer)
    return buffer.getvalue()


def test_the_values_of_a_chart_are_tables() -> None:
    from pptx.chart.data import CategoryChartData, XyChartData
    from pptx.enum.chart import XL_CHART_TYPE

    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    bars, points = CategoryChartData(), XyChartData()
    bars.add_category("2022").add_sub_category("spring")
    bars.add_series("Metres", (410,))
    points.add_series("Depth").add_data_point(0.7, 2.5)
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, 9, 9, bars).chart
    chart.has_title, chart.chart_title.text_frame.text = True, "Tunnel"
    slide.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, 0, 0, 9, 9, points)
    assert read(FILE, saved(presentation)).text == (
        "Tunnel\n\n|  | Metres |\n| --- | --- |\n| spring | 410 |\n\n"
        "|  | Depth |\n| --- | --- |\n| 0.7 | 2.5 |\n"
    )


def test_a_hidden_slide_is_read_and_named_as_hidden() -> None:
    presentation = pptx.Presentation()
    for title in ("Shown", "Bid"):
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        slide.shapes.title.text = title
    slide._element.set("show", "0")
    found = read(FILE, saved(presentation))
    assert (found.text, found.note) == ("# Shown\n\n# Bid (hidden)\n", "has hidden slides: 2")


def test_cells_that_span_rows_and_columns_keep_their_places() -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    grid = slide.shapes.add_table(2, 3, 0, 0, 9, 9).table
    grid.cell(0, 0).merge(grid.cell(1, 0))
    grid.cell(0, 1).merge(grid.cell(0, 2))
    for at, words in {(0, 0): "Kind", (0, 1): "Minutes", (1, 1): "hot", (1, 2): "cold"}.items():
        grid.cell(*at).text = words
    assert read(FILE, saved(presentation)).text == (
        "| Kind | Minutes |  |\n| --- | --- | --- |\n| Kind | hot | cold |\n"
    )


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


def test_raised_and_lowered_text_stays_apart_from_the_characters_before_it() -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    grid = slide.shapes.add_table(1, 1, 0, 0, 100, 100).table
    for frame, baseline in ((slide.shapes.title.text_frame, "30000"), (grid.cell(0, 0).text_frame, "-25000")):
        frame.text = "Use 10"
        run = frame.paragraphs[0].add_run()
        run.text = "6"
        run._r.get_or_add_rPr().set("baseline", baseline)
    assert read(FILE, saved(presentation)).text == "# Use 10⁶\n\n| Use 10₆ |\n| --- |\n"


def test_struck_out_text_is_left_out() -> None:
    presentation = pptx.Presentation()
    title = presentation.slides.add_slide(presentation.slide_layouts[5]).shapes.title.text_frame
    title.text = "90"
    title.paragraphs[0].runs[0]._r.get_or_add_rPr().set("strike", "sngStrike")
    title.paragraphs[0].add_run().text = " 70 EUR"
    assert read(FILE, saved(presentation)).text == "# 70 EUR\n"
