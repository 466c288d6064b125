"""DOCX: headings, paragraphs, lists and tables, in their order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ragmemory.files.formats.office import open_office
from ragmemory.files.formats.read import Damaged, Read, TextBuilder, one_line

if TYPE_CHECKING:
    from docx.document import Document
    from docx.table import Table
    from docx.text.paragraph import Paragraph

KIND = "Word"
HEADING = re.compile(r"heading (\d)", re.IGNORECASE)


def read(path: Path, data: bytes) -> Read:
    """The text of a document, without headers, footers and comments. Raises NotText."""
    document, blocks = open_office(data, KIND, _open)
    from docx.table import Table

    builder, title, items = TextBuilder(), "", list[str]()
    for block in blocks:
        if isinstance(block, Table):
            builder.add("\n".join(items))
            items = []
            builder.add_rows(_rows(block))
            continue
        text, level, is_item = _described(block)
        if is_item and text:
            items.append(f"- {text}")
            continue
        builder.add("\n".join(items))
        items = []
        title = title or (text if level else "")
        builder.add(f"{'#' * min(level, 6)} {text}" if level and text else text)
    builder.add("\n".join(items))
    stated = one_line(document.core_properties.title or "")
    return builder.read(stated or title or path.name)


def _open(file: IO[bytes]) -> tuple[Document, list[Paragraph | Table]]:
    import docx
    from docx.opc.exceptions import OpcError
    from lxml.etree import LxmlError

    try:
        document = docx.Document(file)
        return document, list(document.iter_inner_content())
    except (OpcError, LxmlError):
        raise Damaged(KIND) from None


def _described(paragraph: Paragraph) -> tuple[str, int, bool]:
    """The text of a paragraph, its level as a heading or 0, and whether it is an item of a list."""
    style = paragraph.style.name if paragraph.style is not None else ""
    heading = HEADING.fullmatch(style or "")
    properties = paragraph._p.pPr
    is_numbered = properties is not None and properties.numPr is not None
    text = paragraph.text.strip()
    if heading or style == "Title":
        return one_line(text), int(heading[1]) if heading else 1, False
    is_item = is_numbered or (style or "").startswith("List ")
    return (one_line(text) if is_item else text), 0, is_item


def _rows(block: Table) -> list[list[str]]:
    """The cells; one that spans several columns is given once."""
    rows = []
    for row in block.rows:
        cells, last = [], None
        for cell in row.cells:
            cells.append("" if cell._tc is last else one_line(cell.text))
            last = cell._tc
        rows.append(cells)
    return rows
