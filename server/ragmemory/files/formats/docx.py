"""DOCX: headings, paragraphs, lists, tables and notes in document order, then headers and footers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

from ragmemory.files.formats.archives import attribute, local
from ragmemory.files.formats.file_text import (
    COMMENTS,
    MAX_REPEATED,
    MAX_SPANNED,
    Damaged,
    FileText,
    TextBuilder,
    one_line,
    shifted,
    stated_title,
)
from ragmemory.files.formats.office import open_office

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from docx.document import Document

KIND = "Word"
HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
# Elements around paragraphs, rows and cells.
WRAPPERS = frozenset(("sdt", "sdtContent", "customXml", "smartTag", "ins", "moveTo"))
# Elements whose text is not shown, or repeats that of a sibling in another form.
LEFT_OUT = frozenset(("pPr", "rPr", "tblPr", "trPr", "tcPr", "del", "moveFrom", "instrText", "Fallback"))
CHARACTERS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
# Levels of nested lists, from 0.
MAX_LEVEL = 8
# A number with more digits is taken for damage.
MAX_DIGITS = 6
# By the list and the level.
Numbers: TypeAlias = dict[tuple[str, str], int]
# The names of styles, and the numbering of their paragraphs, by id.
Styles: TypeAlias = "dict[str, tuple[str, Element | None]]"


def read(path: Path, data: bytes) -> FileText:
    """The text of a document, without comments. Raises NotText."""
    document, styles, first, notes = open_office(data, KIND, _open)
    builder, title, items = TextBuilder(by_paragraph=True, notes=notes), "", list[str]()
    last = Numbers()
    for block in _inner(document.element.body, "p", "tbl"):
        if local(block.tag) == "tbl":
            builder.add("\n".join(items))
            items = []
            builder.add_rows(_rows(block))
            continue
        text, level, marker = _described(block, styles, first, last)
        if marker and text:
            items.append(f"{marker} {text}")
            continue
        builder.add("\n".join(items))
        items = []
        title = title or (text if level else "")
        builder.add(f"{'#' * min(level, 6)} {text}" if level and text else text)
    builder.add("\n".join(items))
    for kind in ("header", "footer"):
        texts = (one_line(_text(one)) for one in _parts(document, kind))
        for text in dict.fromkeys(text for text in texts if any(map(str.isalpha, text))):
            builder.add(f"{kind.capitalize()}: {text}", kind)
    stated = stated_title(document.core_properties.title or "")
    has_comments = any(len(comments) for comments in _parts(document, "comments"))
    return builder.build(stated or title or path.name, COMMENTS if has_comments else "")


def _open(file: IO[bytes]) -> tuple[Document, Styles, Numbers, dict[str, str]]:
    """The document, its styles by id, the first numbers of its lists, and its notes by their marks."""
    import docx
    from docx.opc.exceptions import OpcError
    from lxml.etree import LxmlError

    try:
        document = docx.Document(file)
        # python-docx searches all styles for each paragraph.
        styles = {
            style.styleId: (style.name_val or "", _properties(style, "pPr").get("numPr"))
            for style in document.styles.element.style_lst
        }
        return document, styles, _first_numbers(document), _notes(document)
    except (OpcError, LxmlError):
        raise Damaged(KIND) from None


def _parts(document: Document, kind: str) -> Iterator[Element]:
    """The parts of the document of a kind such as "header"."""
    from docx.oxml import parse_xml

    for one in document.part.rels.values():
        if one.reltype.endswith(f"/{kind}") and not one.is_external:
            part = one.target_part
            yield part.element if hasattr(part, "element") else parse_xml(part.blob)


def _first_numbers(document: Document) -> Numbers:
    """The first number of each level that has decimal numbers."""
    defined, first = dict[str, dict[str, int]](), Numbers()
    for one in (one for part in _parts(document, "numbering") for one in part):
        levels = {attribute(level, "ilvl"): _children(level) for level in _inner(one, "lvl", "lvlOverride")}
        if local(one.tag) == "abstractNum":
            decimal = {at: level for at, level in levels.items() if _value(level.get("numFmt")) == "decimal"}
            starts = {at: _count(level.get("start"), 1) for at, level in decimal.items()}
            defined[attribute(one, "abstractNumId")] = starts
        elif local(one.tag) == "num":
            for at, usual in defined.get(_value(_children(one).get("abstractNumId")), {}).items():
                start = _count(levels.get(at, {}).get("startOverride"), usual)
                first[attribute(one, "numId"), at] = start
    return first


def _notes(document: Document) -> dict[str, str]:
    """The notes by their marks, which take the places of the references to them."""
    notes = {}
    for kind, letter in (("footnote", ""), ("endnote", "e")):
        found = (note for part in _parts(document, f"{kind}s") for note in part)
        texts = {attribute(note, "id"): one_line(_text(note)) for note in found}
        references = [one for one in document.element.body.iter() if local(one.tag) == f"{kind}Reference"]
        for number, reference in enumerate(references, 1):
            mark = f"[^{letter}{number}]"
            notes[mark] = texts.get(attribute(reference, "id"), "")
            reference.tag, reference.text = reference.tag.replace(f"{kind}Reference", "t"), mark
    return notes


def _inner(element: Element, *names: str) -> Iterator[Element]:
    """The children with these names, including those inside wrappers such as content controls."""
    for child in element:
        name = local(child.tag)
        if name in names:
            yield child
        elif name in WRAPPERS:
            yield from _inner(child, *names)


def _children(element: Iterable[Element]) -> dict[str, Element]:
    return {local(one.tag): one for one in element}


def _properties(element: Element, name: str) -> dict[str, Element]:
    return _children(next(_inner(element, name), ()))


def _described(paragraph: Element, styles: Styles, first: Numbers, last: Numbers) -> tuple[str, int, str]:
    """The text of a paragraph, its level as a heading or 0, and its marker as an item of a list or ""."""
    properties = _properties(paragraph, "pPr")
    style, numbering = styles.get(_value(properties.get("pStyle")), ("", None))
    heading = HEADING.fullmatch(style)
    text = _text(paragraph).strip()
    if heading or style == "Title":
        return one_line(text), int(heading[1]) if heading else 1, ""
    numbering = properties.get("numPr", numbering)
    if numbering is None:
        return (one_line(text), 0, "-") if style.startswith("List ") else (text, 0, "")
    return one_line(text), 0, _marker(_children(numbering), first, last) if text else ""


def _marker(numbering: dict[str, Element], first: Numbers, last: Numbers) -> str:
    """The bullet or number of the next item. `last`: the numbers that were given."""
    name, level = _value(numbering.get("numId")), min(_count(numbering.get("ilvl"), 0), MAX_LEVEL)
    for deeper in range(level + 1, MAX_LEVEL + 1):
        last.pop((name, str(deeper)), None)
    key = name, str(level)
    if key in first:
        last[key] = last.get(key, first[key] - 1) + 1
    return f"{'  ' * level}{f'{last[key]}.' if key in first else '-'}"


def _value(property: Element | None) -> str:
    return attribute(property, "val") if property is not None else ""


def _text(element: Element) -> str:
    """The text of an element, including text boxes and nested tables, without deleted and struck-out text."""
    return "".join(_pieces(element))


def _pieces(element: Element) -> Iterator[str]:
    for shift, parts in groupby(element, _shift):
        pieces = _unshifted(parts)
        yield from [shifted("".join(pieces), is_raised=shift == "superscript")] if shift else pieces


def _shift(part: Element) -> str:
    """How a run is shifted: "superscript", "subscript" or ""."""
    shift = _value(_properties(part, "rPr").get("vertAlign")) if local(part.tag) == "r" else ""
    return shift if shift in ("superscript", "subscript") else ""


def _unshifted(parts: Iterable[Element]) -> Iterator[str]:
    for child in parts:
        name = local(child.tag)
        if name == "r" and _is_struck(child):
            continue
        if name == "t":
            yield child.text or ""
        elif name in CHARACTERS:
            yield CHARACTERS[name]
        elif name == "p":
            yield from ("\n", _text(child), "\n")
        elif name not in LEFT_OUT:
            yield from _pieces(child)


def _is_struck(run: Element) -> bool:
    properties = _properties(run, "rPr")
    lines = (properties[name] for name in ("strike", "dstrike") if name in properties)
    return any(_value(line) not in ("false", "0", "off") for line in lines)


def _rows(grid: Element) -> list[list[str]]:
    """The cells. One that spans columns is given once; one that spans rows, in each of them."""
    rows, above = [], dict[int, str]()
    for row in _inner(grid, "tr"):
        properties = _properties(row, "trPr")
        cells = [""] * min(_count(properties.get("gridBefore"), 0), MAX_SPANNED)
        for cell in _inner(row, "tc"):
            properties = _properties(cell, "tcPr")
            is_below = "vMerge" in properties and _value(properties["vMerge"]) != "restart"
            column, text = len(cells), one_line(_text(cell))
            if is_below and len(shown := above.get(column, "")) <= MAX_REPEATED:
                text = shown
            above[column] = text
            cells += [text, *[""] * (min(_count(properties.get("gridSpan"), 1), MAX_SPANNED) - 1)]
        rows.append(cells)
    return rows


def _count(property: Element | None, usual: int) -> int:
    value = _value(property)
    return int(value) if value.isdecimal() and len(value) <= MAX_DIGITS else usual
