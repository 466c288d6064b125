"""OpenDocument: texts, spreadsheets and presentations, as they are displayed, with dates in ISO 8601."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from ragmemory.files.formats.archives import attribute, local, open_archive, xml
from ragmemory.files.formats.file_text import (
    CHANGES,
    COMMENTS,
    Cell,
    FileText,
    TextBuilder,
    listed,
    one_line,
    spread,
    stated_title,
    table,
)
from ragmemory.files.formats.list_numbers import item, written
from ragmemory.files.formats.sheets import Sheet, add_sheets
from ragmemory.files.formats.unstyled import HEADING

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

KIND = "OpenDocument"
# Nesting depth of lists, sections and frames.
MAX_DEPTH = 100
# More repeated cells, rows or spaces only fill the page.
MAX_REPEATED = 100
REPEATED = f"only the first {MAX_REPEATED} of equal rows or cells that follow each other were read"
MAX_ROWS = 1_000_000
MAX_NUMBER = 999_999
# Upper limit of the styles that one is based on.
MAX_INHERITED = 10
STYLES = frozenset(("style", "list-style", "outline-style"))
# The elements around them. A default style has no name.
STYLE_GROUPS = frozenset(("styles", "automatic-styles"))
# The style of the title of a document.
TITLE = "Title"
ROW_GROUPS = frozenset(("table-header-rows", "table-rows", "table-row-group"))
BULLET = "-"
BOLD = frozenset(("bold", "600", "700", "800", "900"))
CELLS = frozenset(("table-cell", "covered-table-cell"))
LEFT_OUT = frozenset(
    ("annotation", "tracked-changes", "sequence-decls", "forms", "table-of-content", "notes", "shapes")
)


def read(path: Path, data: bytes) -> FileText:
    """The text of a document, without comments. Raises NotText."""
    archive = open_archive(data, KIND)
    content = xml(archive, "content.xml", KIND)
    body = next((one for one in content.iter() if local(one.tag) == "body"), content)
    document = next((one for one in body if local(one.tag) in ("spreadsheet", "presentation")), body)
    own = _styles(content)
    named = _styles(xml(archive, "styles.xml", KIND)) if "styles.xml" in archive.namelist() else []
    hidden = {attribute(one, "name") for one in own if _hides(one)}
    lists = _Lists([*own, *named])
    notes, first = list[str](), ""
    if local(document.tag) == "spreadsheet":
        builder = TextBuilder()
        notes = add_sheets(_sheets(document, hidden, notes), builder) + list(dict.fromkeys(notes))
    elif local(document.tag) == "presentation":
        builder = TextBuilder()
        first = _add_slides(document, hidden, lists, builder, notes)
    else:
        builder = TextBuilder(by_paragraph=True, notes=_notes(content))
        styles = {attribute(one, "name"): one for one in [*named, *own]}
        titles = {
            TITLE,
            *(name for name, one in styles.items() if attribute(one, "parent-style-name") == TITLE),
        }
        for block, is_bold in _blocks(document, lists, _bold_styles(styles), titles):
            first = first or (block.lstrip("# ") if HEADING.match(block) else "")
            builder.add(block, is_bold=is_bold)
    title = ""
    if "meta.xml" in archive.namelist():
        about = xml(archive, "meta.xml", KIND).iter()
        title = next((stated_title(one.text or "") for one in about if local(one.tag) == "title"), "")
    if any(local(one.tag) == "annotation" for one in content.iter()):
        notes.append(COMMENTS)
    if any(local(one.tag) == "tracked-changes" and len(one) for one in content.iter()):
        notes.append(CHANGES)
    return builder.build(title or first or path.name, "; ".join(notes))


def _hides(style: Element) -> bool:
    """Whether sheets or slides of this style are hidden."""
    return any(
        attribute(one, "display") == "false" or attribute(one, "visibility") == "hidden" for one in style
    )


def _add_slides(
    document: Element, hidden: set[str], lists: _Lists, builder: TextBuilder, notes: list[str]
) -> str:
    """Add the slides of a presentation; return the first title."""
    first, passed = "", list[str]()
    slides = [one for one in document if local(one.tag) == "page"]
    for number, slide in enumerate(slides, 1):
        titles = [one for one in slide if attribute(one, "class") == "title"]
        title = one_line(" ".join(_text(one, 0) for one in titles))
        first = first or title
        if attribute(slide, "style-name") in hidden:
            passed.append(f"{number}")
            title = f"{title or f'Slide {number}'} (hidden)"
        parts = [f"# {title}"] if title else []
        for part in slide:
            if part not in titles:
                parts += (block for block, _ in _blocks([part], lists))
            if local(part.tag) == "notes" and (said := one_line(_text(part, 0))):
                parts.append(f"Notes: {said}")
        builder.add("\n\n".join(parts), f"slide {number}")
    if passed:
        notes.append(f"has hidden slides: {listed(passed, '')}")
    return first


def _sheets(document: Element, hidden: set[str], notes: list[str]) -> Iterator[Sheet]:
    """The sheets; while their rows are read, `notes` are added."""
    for one in document:
        if local(one.tag) == "table":
            spans = dict[tuple[int, int], int]()
            is_hidden = attribute(one, "style-name") in hidden
            yield Sheet(attribute(one, "name"), is_hidden, _rows(one, notes, spans), spans)


def _rows(
    sheet: Element, notes: list[str], spans: dict[tuple[int, int], int]
) -> Iterator[tuple[int, dict[int, str]]]:
    """The rows of a sheet as `Sheet` has them; their `spans` are added before."""
    number = 1
    for row in _own_rows(sheet):
        count = _count(row, "number-rows-repeated", MAX_ROWS)
        values = _values(row, notes)
        for column, _, cell in _placed(row):
            if (rows := _count(cell, "number-rows-spanned", MAX_ROWS)) > 1:
                spans[number, column] = number + rows - 1
        if values and count > MAX_REPEATED:
            notes.append(REPEATED)
        for repeated in range(min(count, MAX_REPEATED) if values else 0):
            yield number + repeated, values
        number += count


def _placed(row: Element) -> Iterator[tuple[int, int, Element]]:
    """The cells of a row, each with its first column, from 0, and the number of columns that have it."""
    column = 0
    for cell in row:
        if local(cell.tag) in CELLS:
            count = _count(cell, "number-columns-repeated", MAX_ROWS)
            yield column, count, cell
            column += count


def _values(row: Element, notes: list[str]) -> dict[int, str]:
    """The cells with text by their columns, from 0."""
    values = dict[int, str]()
    for column, count, cell in _placed(row):
        text = attribute(cell, "date-value").removesuffix("T00:00:00").replace("T", " ")
        if text := text or one_line(_text(cell, 0)):
            values |= dict.fromkeys(range(column, column + min(count, MAX_REPEATED)), text)
            if count > MAX_REPEATED:
                notes.append(REPEATED)
    return values


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


class _Lists:
    """The numbers of the items of lists."""

    def __init__(self, styles: Sequence[Element]) -> None:
        # The numbered levels, by the name of the style and the level.
        self._levels = {
            (attribute(style, "name"), _count(level, "level")): level
            for style in styles
            if local(style.tag) in ("list-style", "outline-style")
            for level in style
            if attribute(level, "num-format")
        }
        outlines = (attribute(style, "name") for style in styles if local(style.tag) == "outline-style")
        self._outline = next(outlines, "")
        # The styles of headings without the numbers of the outline.
        self._unnumbered = {
            attribute(style, "name") for style in styles if attribute(style, "list-style-name", "-") == ""
        }
        # The last number of each level, by the id and the style of the list.
        self._last: dict[str, dict[int, int]] = {}

    def heading(self, heading: Element) -> str:
        """A heading outside of lists, with its number if the outline of the document has numbers."""
        level = attribute(heading, "outline-level", "1")
        number = ""
        if attribute(heading, "style-name") not in self._unnumbered and level.isdecimal():
            is_none = attribute(heading, "is-list-header") == "true"
            last = self._last.setdefault(f"{self._outline} outline", {})
            number = "" if is_none else self._marker(heading, self._outline, last, min(int(level), MAX_DEPTH))
        return f"{_level(heading)} {one_line(f'{number.removeprefix(BULLET)} {_text(heading, 0)}')}"

    def blocks(self, items: Element) -> Iterator[str]:
        """The items of a list in one block, but numbered headings in blocks of their own."""
        style = attribute(items, "style-name")
        is_continued = attribute(items, "continue-numbering") == "true"
        before = attribute(items, "continue-list") or (style if is_continued else "")
        last = self._last.get(before, {}) if before else {}
        self._last[style] = self._last[attribute(items, "id") or style] = last
        for is_heading, group in groupby(self._items(items, style, last, 1), itemgetter(0)):
            lines = [line for _, line in group]
            yield from lines if is_heading else ["\n".join(lines)]

    def _items(
        self, items: Element, style: str, last: dict[int, int], level: int
    ) -> Iterator[tuple[bool, str]]:
        """The items of a list, and whether each is a heading."""
        if level > MAX_DEPTH:
            return
        for one in items:
            text = one_line(" ".join(_text(part, 0) for part in one if local(part.tag) in ("p", "h")))
            if text:
                marker = self._marker(one, style, last, level)
                heading = next((part for part in one if local(part.tag) == "h"), None)
                if heading is not None:
                    number = "" if marker == BULLET else marker
                    yield True, f"{_level(heading)} {one_line(f'{number} {text}')}"
                else:
                    yield False, f"{'  ' * (level - 1)}{item(marker)} {text}"
            for inner in one:
                if local(inner.tag) == "list":
                    # A list that only leads to its inner one continues it.
                    if text and attribute(inner, "continue-numbering") != "true":
                        last.pop(level + 1, None)
                    yield from self._items(inner, attribute(inner, "style-name", style), last, level + 1)

    def _marker(self, one: Element, style: str, last: dict[int, int], level: int) -> str:
        """The bullet or number of the next item."""
        for deeper in [other for other in last if other > level]:
            del last[deeper]
        own = self._levels.get((style, level))
        if own is None or local(one.tag) == "list-header":
            return BULLET
        first = _count(own, "start-value", MAX_NUMBER)
        last[level] = _count(one, "start-value", MAX_NUMBER, last.get(level, first - 1) + 1)
        numbers = []
        for other in range(max(1, level + 1 - _count(own, "display-levels")), level + 1):
            outer = self._levels.get((style, other))
            if outer is not None:
                number = last.get(other, _count(outer, "start-value", MAX_NUMBER))
                numbers.append(written(number, attribute(outer, "num-format")))
        suffix = attribute(own, "num-suffix", "" if len(numbers) > 1 or style == self._outline else ".")
        return f"{attribute(own, 'num-prefix')}{'.'.join(numbers)}{suffix}"


def _level(heading: Element) -> str:
    """The mark of a heading in Markdown."""
    level = attribute(heading, "outline-level", "1")
    return "#" * min(int(level) if level.isdecimal() else 1, 6)


def _styles(part: Element) -> list[Element]:
    """The styles that a part of the document defines, also those of lists within others."""
    groups = (group for group in part if local(group.tag) in STYLE_GROUPS)
    return [one for group in groups for one in group.iter() if local(one.tag) in STYLES]


def _bold_styles(styles: Mapping[str, Element]) -> dict[str, bool]:
    """Whether each style that has a weight, its own or an inherited one, is bold."""
    own = {name: (_own_weight(one), attribute(one, "parent-style-name")) for name, one in styles.items()}
    weights = {name: _weight(name, own) for name in own}
    return {name: weight in BOLD for name, weight in weights.items() if weight}


def _own_weight(style: Element) -> str:
    weights = (attribute(one, "font-weight") for one in style if local(one.tag) == "text-properties")
    return next(filter(None, weights), "")


def _weight(name: str, own: Mapping[str, tuple[str, str]], inherited: int = 0) -> str:
    weight, base = own.get(name, ("", ""))
    return weight or (_weight(base, own, inherited + 1) if base and inherited < MAX_INHERITED else "")


def _is_bold(paragraph: Element, styles: Mapping[str, bool]) -> bool:
    """Whether a paragraph is bold throughout; `styles`: whether they are bold."""
    own = styles.get(attribute(paragraph, "style-name"), False)
    texts = paragraph.text or "", *(one.tail or "" for one in paragraph)
    if not own and any(map(str.strip, texts)):
        return False
    return all(
        styles.get(attribute(one, "style-name"), own) or not _text(one, 0).strip() for one in paragraph
    )


def _blocks(
    parent: Iterable[Element],
    lists: _Lists,
    bold: Mapping[str, bool] = {},
    titles: Container[str] = (),
    depth: int = 0,
) -> Iterator[tuple[str, bool]]:
    """The headings, paragraphs, lists and tables of an element as Markdown, and whether they are bold."""
    for element in parent:
        name = local(element.tag)
        if name in LEFT_OUT or depth > MAX_DEPTH:
            continue
        if name == "h":
            if _text(element, 0).strip():
                yield lists.heading(element), False
        elif name == "p" and attribute(element, "style-name") in titles:
            if title := one_line(_text(element, 0)):
                yield f"# {title}", False
        elif name == "p":
            yield _text(element, 0), _is_bold(element, bold)
        elif name == "list":
            yield from ((block, False) for block in lists.blocks(element))
        elif name == "table":
            yield "\n".join(table(spread(map(_cells, _own_rows(element))))), False
        else:
            yield from _blocks(element, lists, bold, titles, depth + 1)


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


def _count(element: Element, name: str, most: int = MAX_REPEATED, usual: int = 1) -> int:
    count = attribute(element, name)
    return min(int(count), most) if count.isdecimal() else usual
