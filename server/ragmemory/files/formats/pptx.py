"""PPTX: the text, tables and notes of each slide; the places are the slides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ragmemory.files.formats.file_text import Damaged, FileText, TextBuilder, one_line, stated_title, table
from ragmemory.files.formats.office import open_office

if TYPE_CHECKING:
    from pptx.presentation import Presentation
    from pptx.shapes.base import BaseShape
    from pptx.slide import Slide

KIND = "PowerPoint"
# Nesting depth of grouped shapes.
MAX_DEPTH = 20


def read(path: Path, data: bytes) -> FileText:
    """The text of a presentation. Raises NotText."""
    presentation, slides = open_office(data, KIND, _open)
    builder, first = TextBuilder(), ""
    for number, slide in enumerate(slides, 1):
        title = _title(slide)
        first = first or title
        parts = [f"# {title}"] if title else []
        builder.add("\n\n".join([*parts, *_parts(slide)]), f"slide {number}")
    stated = stated_title(presentation.core_properties.title or "")
    is_stated = stated and stated != "PowerPoint Presentation"
    return builder.build(stated if is_stated else first or path.name)


def _open(file: IO[bytes]) -> tuple[Presentation, list[Slide]]:
    import pptx
    from lxml.etree import LxmlError
    from pptx.exc import PythonPptxError

    try:
        presentation = pptx.Presentation(file)
        return presentation, list(presentation.slides)
    except (PythonPptxError, LxmlError):
        raise Damaged(KIND) from None


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
        notes = slide.notes_slide.notes_text_frame.text.strip()
        if notes:
            yield f"Notes: {notes}"


def _texts(shape: BaseShape, depth: int) -> Iterator[str]:
    if getattr(shape, "has_table", False):
        # python-pptx's own iteration over rows takes quadratic time.
        rows = [[cell.text for cell in row.tc_lst] for row in shape.table._tbl.tr_lst]
        yield "\n".join(table(rows))
    elif shape.has_text_frame:
        paragraphs = [
            (paragraph.level, one_line(paragraph.text)) for paragraph in shape.text_frame.paragraphs
        ]
        lines = [f"{'  ' * level}- {text}" for level, text in paragraphs if text]
        yield lines[0].strip()[2:] if len(lines) == 1 else "\n".join(lines)
    elif depth < MAX_DEPTH:
        for inner in getattr(shape, "shapes", ()):
            yield from _texts(inner, depth + 1)
