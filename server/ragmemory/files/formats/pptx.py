"""PPTX: the text, tables, charts and notes of each slide; the places are the slides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ragmemory.files.formats.archives import attribute, local
from ragmemory.files.formats.file_text import (
    Cell,
    Damaged,
    FileText,
    TextBuilder,
    listed,
    one_line,
    shifted,
    spread,
    stated_title,
    table,
)
from ragmemory.files.formats.office import open_office

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from pptx.chart.chart import Chart
    from pptx.oxml.table import CT_TableCell
    from pptx.presentation import Presentation
    from pptx.shapes.base import BaseShape
    from pptx.slide import Slide

KIND = "PowerPoint"
# Nesting depth of grouped shapes.
MAX_DEPTH = 20


def read(path: Path, data: bytes) -> FileText:
    """The text of a presentation. Raises NotText."""
    presentation, slides = open_office(data, KIND, _open)
    builder, first, hidden = TextBuilder(), "", list[str]()
    for number, slide in enumerate(slides, 1):
        _write_shifted(slide._element)
        title = _title(slide)
        first = first or title
        if slide._element.get("show") in ("0", "false"):
            hidden.append(f"{number}")
            title = f"{title or f'Slide {number}'} (hidden)"
        parts = [f"# {title}"] if title else []
        builder.add("\n\n".join([*parts, *_parts(slide)]), f"slide {number}")
    stated = stated_title(presentation.core_properties.title or "")
    note = f"has hidden slides: {listed(hidden, '')}" if hidden else ""
    return builder.build(stated or first or path.name, note)


def _open(file: IO[bytes]) -> tuple[Presentation, list[Slide]]:
    import pptx
    from lxml.etree import LxmlError
    from pptx.exc import PythonPptxError

    try:
        presentation = pptx.Presentation(file)
        return presentation, list(presentation.slides)
    except (PythonPptxError, LxmlError):
        raise Damaged(KIND) from None


def _write_shifted(part: Element) -> None:
    """Write raised and lowered text as characters, and drop what is struck out."""
    for run in (one for one in part.iter() if local(one.tag) == "r"):
        pieces = {local(one.tag): one for one in run}
        if "rPr" not in pieces or "t" not in pieces:
            continue
        baseline, strike = attribute(pieces["rPr"], "baseline"), attribute(pieces["rPr"], "strike")
        if strike not in ("", "noStrike"):
            pieces["t"].text = ""
        elif baseline.strip("-0%"):
            pieces["t"].text = shifted(pieces["t"].text or "", is_raised=not baseline.startswith("-"))


def _title(slide: Slide) -> str:
    shape = slide.shapes.title
    return one_line(shape.text_frame.text) if shape is not None else ""


def _parts(slide: Slide) -> Iterator[str]:
    """The texts of a slide except its title, then the speaker notes."""
    title = slide.shapes.title
    for shape in slide.shapes:
        if title is None or shape.shape_id != title.shape_id:
            yield from filter(None, _texts(shape, 0))
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        _write_shifted(slide.notes_slide._element)
        notes = slide.notes_slide.notes_text_frame.text.strip()
        if notes:
            yield f"Notes: {notes}"


def _texts(shape: BaseShape, depth: int) -> Iterator[str]:
    if getattr(shape, "has_table", False):
        # python-pptx's own iteration over rows takes quadratic time.
        rows = (filter(None, map(_cell, row.tc_lst)) for row in shape.table._tbl.tr_lst)
        yield "\n".join(table(spread(rows)))
    elif getattr(shape, "has_chart", False):
        yield from _chart(shape.chart)
    elif shape.has_text_frame:
        paragraphs = [
            (paragraph.level, one_line(paragraph.text)) for paragraph in shape.text_frame.paragraphs
        ]
        lines = [f"{'  ' * level}- {text}" for level, text in paragraphs if text]
        yield lines[0].strip()[2:] if len(lines) == 1 else "\n".join(lines)
    elif depth < MAX_DEPTH:
        for inner in getattr(shape, "shapes", ()):
            yield from _texts(inner, depth + 1)


def _cell(cell: CT_TableCell) -> Cell | None:
    """None for a cell that is covered by another."""
    return None if cell.hMerge or cell.vMerge else (cell.text, cell.gridSpan, cell.rowSpan)


def _chart(chart: Chart) -> Iterator[str]:
    """The title of a chart, and a table for each series. python-pptx takes quadratic time for the values."""
    if chart.has_title and chart.chart_title.has_text_frame:
        yield one_line(chart.chart_title.text_frame.text)
    for series in (one for one in chart.element.iter() if local(one.tag) == "ser"):
        parts = {local(part.tag): _points(part) for part in series}
        names, values = parts.get("cat", parts.get("xVal", {})), parts.get("val", parts.get("yVal", {}))
        header = ["", " ".join(parts.get("tx", {}).values())]
        yield "\n".join(table([header, *([names.get(at, ""), value] for at, value in values.items())]))


def _points(part: Element) -> dict[str, str]:
    """The values of a part of a series by their numbers. Of nested categories, the inner ones come first."""
    points = dict[str, str]()
    for one in part.iter():
        if local(one.tag) == "pt":
            points.setdefault(attribute(one, "idx"), one_line("".join(one.itertext())))
    return points
