"""DOCX: headings, paragraphs, lists and tables in document order, then headers and footers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ragmemory.files.formats.archives import attribute, local
from ragmemory.files.formats.file_text import Damaged, FileText, TextBuilder, one_line, stated_title
from ragmemory.files.formats.office import open_office

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from docx.document import Document

KIND = "Word"
HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
# Elements around paragraphs, rows and cells.
WRAPPERS = frozenset(("sdt", "sdtContent", "customXml", "ins", "moveTo"))
# Elements whose text is not shown, or repeats that of a sibling in another form.
LEFT_OUT = frozenset(("pPr", "rPr", "tblPr", "trPr", "tcPr", "del", "moveFrom", "instrText", "Fallback"))
CHARACTERS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
# Upper limit of the columns that one cell spans.
MAX_SPANNED = 100
# A longer cell is not repeated in each row that it spans.
MAX_REPEATED = 200


def read(path: Path, data: bytes) -> FileText:
    """The text of a document, without comments and notes. Raises NotText."""
    document, names = open_office(data, KIND, _open)
    builder, title, items = TextBuilder(by_paragraph=True), "", list[str]()
    for block in _inner(document.element.body, "p", "tbl"):
        if local(block.tag) == "tbl":
            builder.add("\n".join(items))
            items = []
            builder.add_rows(_rows(block))
            continue
        text, level, is_item = _described(block, names)
        if is_item and text:
            items.append(f"- {text}")
            continue
        builder.add("\n".join(items))
        items = []
        title = title or (text if level else "")
        builder.add(f"{'#' * min(level, 6)} {text}" if level and text else text)
    builder.add("\n".join(items))
    for kind in ("header", "footer"):
        for text in _repeated(document, kind):
            builder.add(f"{kind.capitalize()}: {text}", kind)
    stated = stated_title(document.core_properties.title or "")
    return builder.build(stated or title or path.name)


def _open(file: IO[bytes]) -> tuple[Document, dict[str, str]]:
    """The document, and the names of its styles by id."""
    import docx
    from docx.opc.exceptions import OpcError
    from lxml.etree import LxmlError

    try:
        document = docx.Document(file)
        # python-docx searches all styles for each paragraph.
        return document, {style.styleId: style.name_val for style in document.styles.element.style_lst}
    except (OpcError, LxmlError):
        raise Damaged(KIND) from None


def _inner(element: Element, *names: str) -> Iterator[Element]:
    """The children with these names, including those inside wrappers such as content controls."""
    for child in element:
        name = local(child.tag)
        if name in names:
            yield child
        elif name in WRAPPERS:
            yield from _inner(child, *names)


def _described(paragraph: Element, names: dict[str, str]) -> tuple[str, int, bool]:
    """The text of a paragraph, its level as a heading or 0, and whether it is an item of a list."""
    properties = {local(one.tag): one for one in next(_inner(paragraph, "pPr"), ())}
    style = names.get(_value(properties.get("pStyle")), "")
    heading = HEADING.fullmatch(style)
    text = _text(paragraph).strip()
    if heading or style == "Title":
        return one_line(text), int(heading[1]) if heading else 1, False
    is_item = "numPr" in properties or style.startswith("List ")
    return (one_line(text) if is_item else text), 0, is_item


def _value(property: Element | None) -> str:
    return attribute(property, "val") if property is not None else ""


def _text(element: Element) -> str:
    """The text of an element, including text boxes and nested tables, without deleted text."""
    return "".join(_pieces(element))


def _pieces(element: Element) -> Iterator[str]:
    for child in element:
        name = local(child.tag)
        if name == "t":
            yield child.text or ""
        elif name in CHARACTERS:
            yield CHARACTERS[name]
        elif name == "p":
            yield from ("\n", _text(child), "\n")
        elif name not in LEFT_OUT:
            yield from _pieces(child)


def _rows(grid: Element) -> list[list[str]]:
    """The cells. One that spans columns is given once; one that spans rows, in each of them."""
    rows, above = [], dict[int, str]()
    for row in _inner(grid, "tr"):
        properties = {local(one.tag): one for one in next(_inner(row, "trPr"), ())}
        cells = [""] * _count(properties.get("gridBefore"), 0)
        for cell in _inner(row, "tc"):
            properties = {local(one.tag): one for one in next(_inner(cell, "tcPr"), ())}
            is_below = "vMerge" in properties and _value(properties["vMerge"]) != "restart"
            column, text = len(cells), one_line(_text(cell))
            if is_below and len(shown := above.get(column, "")) <= MAX_REPEATED:
                text = shown
            above[column] = text
            cells += [text, *[""] * (_count(properties.get("gridSpan"), 1) - 1)]
        rows.append(cells)
    return rows


def _count(property: Element | None, usual: int) -> int:
    value = _value(property)
    return min(int(value), MAX_SPANNED) if value.isdecimal() else usual


def _repeated(document: Document, kind: str) -> list[str]:
    """The distinct texts of the headers or footers, except those without letters."""
    parts = [one for one in document.part.rels.values() if one.reltype.endswith(f"/{kind}")]
    texts = (one_line(_text(one.target_part.element)) for one in parts if not one.is_external)
    return list(dict.fromkeys(text for text in texts if any(map(str.isalpha, text))))
