"""ODT: headings, paragraphs, lists, tables and notes in document order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ragmemory.files.formats.archives import attribute, local, open_archive, xml
from ragmemory.files.formats.file_text import (
    COMMENTS,
    Cell,
    FileText,
    TextBuilder,
    one_line,
    spread,
    stated_title,
)

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

KIND = "OpenDocument"
# Nesting depth of lists, sections and frames.
MAX_DEPTH = 100
# More repeated cells or spaces only fill the page.
MAX_REPEATED = 100
MAX_ROWS = 1_000_000
ROW_GROUPS = frozenset(("table-header-rows", "table-rows", "table-row-group"))
LEFT_OUT = frozenset(("annotation", "tracked-changes", "sequence-decls", "forms", "table-of-content"))


def read(path: Path, data: bytes) -> FileText:
    """The text of a document, without comments. Raises NotText."""
    archive = open_archive(data, KIND)
    content = xml(archive, "content.xml", KIND)
    builder = TextBuilder(by_paragraph=True, notes=_notes(content))
    body = next((one for one in content.iter() if local(one.tag) == "body"), None)
    first = _blocks(body, builder, 0) if body is not None else ""
    title = ""
    if "meta.xml" in archive.namelist():
        about = xml(archive, "meta.xml", KIND).iter()
        title = next((stated_title(one.text or "") for one in about if local(one.tag) == "title"), "")
    has_comments = any(local(one.tag) == "annotation" for one in content.iter())
    return builder.build(title or first or path.name, COMMENTS if has_comments else "")


def _notes(content: Element) -> dict[str, str]:
    """The notes by their marks, which take their places in the text."""
    notes, numbers = dict[str, str](), {"": 0, "e": 0}
    for note in [one for one in content.iter() if local(one.tag) == "note"]:
        letter = "e" if attribute(note, "note-class") == "endnote" else ""
        numbers[letter] += 1
        mark = f"[^{letter}{numbers[letter]}]"
        parts = (_text(part, 0) for part in note if local(part.tag) != "note-citation")
        notes[mark] = one_line(" ".join(parts))
        note[:] = []
        note.text = mark
    return notes


def _blocks(parent: Element, builder: TextBuilder, depth: int) -> str:
    """Add the blocks of an element; return the first heading."""
    first = ""
    for element in parent:
        name = local(element.tag)
        if name in LEFT_OUT or depth > MAX_DEPTH:
            continue
        if name == "h":
            level = attribute(element, "outline-level", "1")
            title = one_line(_text(element, 0))
            first = first or title
            if title:
                builder.add(f"{'#' * min(int(level) if level.isdecimal() else 1, 6)} {title}")
        elif name == "p":
            builder.add(_text(element, 0))
        elif name == "list":
            builder.add("\n".join(_items(element, 0)))
        elif name == "table":
            builder.add_rows(spread(map(_cells, _own_rows(element))))
        else:
            inner = _blocks(element, builder, depth + 1)
            first = first or inner
    return first


def _items(items: Element, depth: int) -> list[str]:
    lines: list[str] = []
    if depth > MAX_DEPTH:
        return lines
    for item in items:
        text = " ".join(one_line(_text(part, 0)) for part in item if local(part.tag) in ("p", "h"))
        if text:
            lines.append(f"{'  ' * depth}- {text}")
        for inner in item:
            if local(inner.tag) == "list":
                lines += _items(inner, depth + 1)
    return lines


def _cells(row: Element) -> Iterator[Cell]:
    """The cells, but not those that are covered by others."""
    for cell in row:
        if local(cell.tag) == "table-cell":
            text = one_line(_text(cell, 0))
            columns = _count(cell, "number-columns-spanned")
            rows = _count(cell, "number-rows-spanned", MAX_ROWS)
            # Empty cells at the end only fill the sheet.
            count = _count(cell, "number-columns-repeated") if text or cell is not row[-1] else 1
            yield from [(text, columns, rows)] * count


def _own_rows(grid: Element) -> Iterator[Element]:
    """The rows of a table, but not those of nested tables, whose text is part of the cells."""
    for part in grid:
        if local(part.tag) == "table-row":
            yield part
        elif local(part.tag) in ROW_GROUPS:
            yield from _own_rows(part)


def _text(element: Element, depth: int) -> str:
    """The text of an element, with the white space that ODT encodes as elements."""
    if depth > MAX_DEPTH:
        return "".join(element.itertext())
    parts = [element.text or ""]
    for child in element:
        name = local(child.tag)
        if name == "s":
            parts.append(" " * _count(child, "c"))
        elif name == "tab":
            parts.append("\t")
        elif name == "line-break":
            parts.append("\n")
        elif name in ("p", "h"):
            parts += ("\n", _text(child, depth + 1), "\n")
        elif name not in LEFT_OUT:
            parts.append(_text(child, depth + 1))
        parts.append(child.tail or "")
    return "".join(parts)


def _count(element: Element, name: str, most: int = MAX_REPEATED) -> int:
    count = attribute(element, name)
    return min(int(count), most) if count.isdecimal() else 1
