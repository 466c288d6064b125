"""DOCX: headings, paragraphs, lists, tables and notes in document order, then headers and footers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, TypeAlias

from ragcommon.text.rules import heading_of
from ragmemory.files.formats.archives import attribute, local
from ragmemory.files.formats.file_text import (
    CHANGES,
    COMMENTS,
    MAX_REPEATED,
    MAX_SPANNED,
    Damaged,
    FileText,
    TextBuilder,
    bracketed,
    fenced,
    one_line,
    script,
    shifted,
    stated_title,
)
from ragmemory.files.formats.list_numbers import item, written
from ragmemory.files.formats.office import open_office

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from docx.document import Document

KIND = "Word"
HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
# The style of a listing, by its name.
LISTING = re.compile(r"\b(?:code|preformatted|verbatim)\b", re.IGNORECASE)
# Elements around paragraphs, rows and cells.
WRAPPERS = frozenset(("sdt", "sdtContent", "customXml", "smartTag", "ins", "moveTo"))
# Elements whose text is not shown, or repeats that of a sibling in another form.
LEFT_OUT = frozenset(
    (
        *("pPr", "rPr", "tblPr", "trPr", "tcPr", "del", "moveFrom", "instrText", "Fallback"),
        *("dPr", "fPr", "naryPr", "radPr", "ctrlPr"),
    )
)
TRACKED = frozenset(("ins", "del", "moveFrom"))
CHARACTERS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
# The parts of formulas that are not written one after another, and the usual signs around a group.
FORMULAS = frozenset(("f", "rad", "d", "nary", "sSup", "sSub", "sSubSup", "limLow", "limUpp"))
DELIMITERS = {"begChr": "(", "endChr": ")"}
# Levels of nested lists, from 0.
MAX_LEVEL = 8
# Upper limits of the styles that one is based on, and of the runs of a heading.
MAX_INHERITED, MAX_RUNS = 10, 20
# A number with more digits is taken for damage.
MAX_DIGITS = 6
# The forms of numbers in lists; others are shown as decimal numbers.
FORMS = {"decimalZero": "01", "lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I"}
BULLETS = frozenset(("bullet", "none"))
PLACEHOLDER = re.compile("%([1-9])")


class Numbering(NamedTuple):
    """How the items of one level of a list are numbered."""

    start: int = 1
    kind: str = "decimal"
    text: str = ""  # with "%1" for the number of the first level
    is_legal: bool = False  # all its numbers are decimal


# By the list and the level.
Numberings: TypeAlias = dict[tuple[str, str], Numbering]
Numbers: TypeAlias = dict[tuple[str, str], int]


class Style(NamedTuple):
    """A style of paragraphs. `level`: that of a heading, or 0."""

    name: str = ""
    numbering: Element | None = None
    level: int = 0
    is_bold: bool = False


class Paragraph(NamedTuple):
    """`level`: that of a heading, or 0. `marker`: of an item of a list, or ""."""

    text: str
    level: int = 0
    marker: str = ""
    is_bold: bool = False


def read(path: Path, data: bytes) -> FileText:
    """The text of a document, without comments. Raises NotText."""
    document, styles, numberings, notes = open_office(data, KIND, _open)
    builder, title, items = TextBuilder(by_paragraph=True, notes=notes), "", list[str]()
    last = Numbers()
    for block in _blocks(document.element.body):
        if local(block.tag) == "tbl":
            builder.add("\n".join(items))
            items = []
            builder.add_rows(_rows(block))
            continue
        text, level, marker, is_bold = _described(block, styles, numberings, last)
        if marker and text and not level and not is_bold:
            items.append(f"{item(marker)} {text}" if marker.strip() else f"{marker}{text}")
            continue
        builder.add("\n".join(items))
        items = []
        title = title or (text if level else "")
        shown = f"{marker.strip()} {text}".strip()
        builder.add(f"{'#' * min(level, 6)} {shown}" if level and text else shown, is_bold=is_bold)
    builder.add("\n".join(items))
    for kind in ("header", "footer"):
        texts = (one_line(_text(one)) for one in _parts(document, kind))
        for text in dict.fromkeys(text for text in texts if any(map(str.isalpha, text))):
            builder.add(f"{kind.capitalize()}: {text}", kind)
    stated = stated_title(document.core_properties.title or "")
    remarks = [COMMENTS] if any(map(len, _parts(document, "comments"))) else []
    remarks += [CHANGES] if any(local(one.tag) in TRACKED for one in document.element.body.iter()) else []
    return builder.build(stated or title or path.name, "; ".join(remarks))


def _open(file: IO[bytes]) -> tuple[Document, dict[str, Style], Numberings, dict[str, str]]:
    """The document, its styles by id, the numbering of its lists, and its notes by their marks."""
    import docx
    from docx.opc.exceptions import OpcError
    from lxml.etree import LxmlError

    try:
        document = docx.Document(file)
        # python-docx searches all styles for each paragraph.
        styles = {style.styleId: style for style in document.styles.element.style_lst}
        return (
            document,
            {name: _style(name, styles) for name in styles},
            _numberings(document),
            _notes(document),
        )
    except (OpcError, LxmlError):
        raise Damaged(KIND) from None


def _parts(document: Document, kind: str) -> Iterator[Element]:
    """The parts of the document of a kind such as "header"."""
    from docx.oxml import parse_xml

    for one in document.part.rels.values():
        if one.reltype.endswith(f"/{kind}") and not one.is_external:
            part = one.target_part
            yield part.element if hasattr(part, "element") else parse_xml(part.blob)


def _numberings(document: Document) -> Numberings:
    defined, found = dict[str, dict[str, Numbering]](), Numberings()
    for one in (one for part in _parts(document, "numbering") for one in part):
        levels = {attribute(level, "ilvl"): _children(level) for level in _inner(one, "lvl", "lvlOverride")}
        if local(one.tag) == "abstractNum":
            defined[attribute(one, "abstractNumId")] = {
                at: Numbering(
                    _count(level.get("start"), 1),
                    _value(level.get("numFmt")) or "decimal",
                    _value(level.get("lvlText")),
                    "isLgl" in level and _is_on(level["isLgl"]),
                )
                for at, level in levels.items()
            }
        elif local(one.tag) == "num":
            for at, usual in defined.get(_value(_children(one).get("abstractNumId")), {}).items():
                start = _count(levels.get(at, {}).get("startOverride"), usual.start)
                found[attribute(one, "numId"), at] = usual._replace(start=start)
    return found


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


def _blocks(element: Element, depth: int = 0) -> Iterator[Element]:
    """The paragraphs and tables; a table without a row with several texts is a frame around those in it."""
    for block in _inner(element, "p", "tbl"):
        rows = [list(_inner(row, "tc")) for row in _inner(block, "tr")] if depth < MAX_LEVEL else []
        filled = [[cell for cell in cells if _text(cell).strip()] for cells in rows]
        if local(block.tag) == "tbl" and rows and all(len(cells) <= 1 for cells in filled):
            for cells in filled:
                for cell in cells:
                    yield from _blocks(cell, depth + 1)
        else:
            yield block


def _children(element: Iterable[Element]) -> dict[str, Element]:
    return {local(one.tag): one for one in element}


def _properties(element: Element, name: str) -> dict[str, Element]:
    return _children(next(_inner(element, name), ()))


def _style(name: str, styles: Mapping[str, Element], inherited: int = 0) -> Style:
    """A style with what it inherits."""
    if name not in styles or inherited > MAX_INHERITED:
        return Style()
    properties, font = _properties(styles[name], "pPr"), _properties(styles[name], "rPr")
    own = _children(styles[name])
    base = _style(_value(own.get("basedOn")), styles, inherited + 1)
    shown = _value(own.get("name"))
    level = _level(properties, shown)
    is_bold = _is_on(font["b"]) if "b" in font else base.is_bold
    numbering = properties.get("numPr", base.numbering)
    return Style(shown, numbering, base.level if level is None else level, is_bold)


def _level(properties: Mapping[str, Element], style: str = "") -> int | None:
    """The level of a heading; 0 for text; None if neither is said."""
    if "outlineLvl" in properties:
        outline = _count(properties["outlineLvl"], MAX_LEVEL + 1)
        return outline + 1 if outline <= MAX_LEVEL else 0
    heading = HEADING.fullmatch(style)
    return int(heading[1]) if heading else 1 if style == "Title" else None


def _described(
    paragraph: Element, styles: Mapping[str, Style], numberings: Numberings, last: Numbers
) -> Paragraph:
    properties = _properties(paragraph, "pPr")
    style = styles.get(_value(properties.get("pStyle")), Style())
    text = _text(paragraph).strip()
    level = _level(properties)
    level = style.level if level is None else level
    numbering = properties.get("numPr", style.numbering)
    is_numbered = numbering is not None and _value(_children(numbering).get("numId")) != "0"
    marker = _marker(_children(numbering), numberings, last) if numbering is not None and text else ""
    if level:
        return Paragraph(one_line(text), level, "" if not is_numbered or marker[-1:] == "-" else marker)
    if not is_numbered:
        if style.name.startswith("List "):
            return Paragraph(one_line(text), marker="-")
        if LISTING.search(style.name) and any(map(heading_of, text.split("\n"))):  # comments with "#"
            return Paragraph(fenced(text))
        return Paragraph(text, is_bold=_is_bold(paragraph, style))
    if not text:
        return Paragraph("")
    return Paragraph(one_line(text), 0, marker, marker[-1] not in "- " and _is_bold(paragraph, style))


def _is_bold(paragraph: Element, style: Style) -> bool:
    """Whether a short paragraph is bold throughout."""
    number = 0
    # The fonts first: the runs of nearly all paragraphs are not bold.
    for run in (one for one in paragraph.iter() if local(one.tag) == "r"):
        font = _properties(run, "rPr")
        is_bold = _is_on(font["b"]) if "b" in font else style.is_bold
        if (number >= MAX_RUNS or not is_bold) and _text(run).strip():
            return False
        number += is_bold
    return number > 0


def _marker(numbering: dict[str, Element], numberings: Numberings, last: Numbers) -> str:
    """The bullet or number of the next item. `last`: the numbers that were given."""
    name, level = _value(numbering.get("numId")), min(_count(numbering.get("ilvl"), 0), MAX_LEVEL)
    for deeper in range(level + 1, MAX_LEVEL + 1):
        last.pop((name, str(deeper)), None)
    key = name, str(level)
    own = numberings.get(key)
    if own is None or own.kind in BULLETS:
        # pandoc gives the further paragraphs of an item a blank bullet.
        return "  " * (level + 1) if own and own.text.isspace() else f"{'  ' * level}-"
    last[key] = last.get(key, own.start - 1) + 1

    def number(placeholder: re.Match[str]) -> str:
        key = name, str(int(placeholder[1]) - 1)
        outer = numberings.get(key, Numbering())
        form = FORMS.get(outer.kind, "1") if outer == own or not own.is_legal else "1"
        return written(last.get(key, outer.start), form)

    shown = PLACEHOLDER.sub(number, own.text or f"%{level + 1}.")
    return f"{'  ' * level}{one_line(shown) or '-'}"


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
        elif name in FORMULAS and "/math}" in child.tag:
            yield _formula(name, child)
        elif name not in LEFT_OUT:
            yield from _pieces(child)


def _formula(name: str, formula: Element) -> str:
    """A part of a formula in one line: "x²", "(a+b)/2", "√(x)", "∑_{k=1}^{n}"."""
    if name == "d":
        signs = _properties(formula, "dPr")
        begin, end = (_value(signs[kind]) if kind in signs else usual for kind, usual in DELIMITERS.items())
        return f"{begin}{', '.join(_text(part) for part in _inner(formula, 'e'))}{end}"
    parts = {local(part.tag): _text(part).strip() for part in formula}
    base, over, under = (parts.get(kind, "") for kind in ("e", "sup", "sub"))
    if name == "f":
        return "/".join(bracketed(parts.get(kind, "")) for kind in ("num", "den"))
    if name == "rad":
        degree = script(parts.get("deg", ""), is_raised=True)
        return f"{degree}√({base})"
    if name == "nary":
        sign = _properties(formula, "naryPr").get("chr")
        base, after = "∫" if sign is None else _value(sign), base
        return f"{base}{script(under, is_raised=False)}{script(over, is_raised=True)} {after}"
    limit = parts.get("lim", "")
    under, over = (under, over or limit) if name == "limUpp" else (under or limit, over)
    return f"{base}{script(under, is_raised=False)}{script(over, is_raised=True)}"


def _is_struck(run: Element) -> bool:
    properties = _properties(run, "rPr")
    return any(_is_on(properties[name]) for name in ("strike", "dstrike") if name in properties)


def _is_on(property: Element) -> bool:
    return _value(property) not in ("false", "0", "off")


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
