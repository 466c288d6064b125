"""A passage cut into units that can be quoted by themselves, by the structure of its text. Pure.

A unit is a verbatim part of the passage: a sentence of prose, a list item, a table row, a line of settings or
code, a message of a chat. `context` holds the words that name it without being part of it: a table's header
row, the line that introduces a list, the parents of a setting, the question above an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from ragchat.offline.layout import ITEM_MARK, ROW_RULE, STAMP, Block, Line, Shape, blocks
from ragchat.offline.sentences import sentence_spans


class Kind(Enum):
    SENTENCE = "sentence"
    ITEM = "item"  # of a list
    ROW = "row"  # of a table
    LINE = "line"  # of a chat, an address, a form: line breaks matter
    CODE = "code"  # a line of code, of settings, of a log
    LABEL = "label"  # names what follows: a title, the header fields of a mail, a question


@dataclass(frozen=True)
class Unit:
    """`text` is passage[start:end]. Units of one `block` may be quoted together.

    `lead` is the part of the context without which a quotation cannot be understood; it is shown with it.
    """

    text: str
    kind: Kind
    start: int
    block: int = 0
    context: str = ""
    lead: str = ""
    indent: int = 0  # of the line that it begins

    @property
    def end(self) -> int:
        return self.start + len(self.text)


_ENDS = re.compile(r"[.!?…。！？:;,][\"'”’»)\]*_]*\s*$")
_ASKS = re.compile(r"[?？][\s*_\"'”’»)\]]*$")
_SECTION = re.compile(r"(?:§\s*)?(?:[IVXLC]+|\d+(?:\.\d+)*)[.)]?\s+\S|\w+\s\d+[.:]?(?:\s|$)")
# Of a table of TOML, or a section of an INI file.
_TABLE_HEAD = re.compile(r"\[{1,2}[^\[\]]+\]{1,2}\s*(?:[#;].*)?$")
# A title is a short line.
_MOST_TITLE_CHARACTERS = 70
_MOST_TITLE_WORDS = 8
# A line this much shorter than the longest one of its paragraph was not wrapped.
_UNWRAPPED = 0.6


def is_question(text: str) -> bool:
    """Whether a text asks, as in a transcript: it has the words of a question, not the answer."""
    return bool(_ASKS.search(text))


def units(passage: str, uri: str = "") -> list[Unit]:
    """The quotable parts of a passage in their order."""
    found = [
        replace(unit, block=number)
        for number, block in enumerate(blocks(passage, uri))
        for unit in _UNITS[block.shape](passage, block)
    ]
    return [unit for unit in _with_context(found) if any(map(str.isalnum, unit.text))]


def _prose(passage: str, block: Block) -> Iterator[Unit]:
    first, rest = block.lines[0], block.lines[1:]
    if _is_title(first.text, rest):
        yield _of(first, Kind.LABEL)
    else:
        rest = block.lines
    if rest:
        start = rest[0].start
        paragraph = passage[start : rest[-1].end]
        for begin, end in sentence_spans(paragraph):
            yield Unit(paragraph[begin:end], Kind.SENTENCE, start + begin)


def _is_title(text: str, rest: Sequence[Line]) -> bool:
    """Whether the first line of a paragraph names the `rest` of it, or what follows."""
    plain = text.strip(" *_")
    if len(plain) > _MOST_TITLE_CHARACTERS or _ENDS.search(plain):
        return is_question(plain) and not rest
    if not rest:
        return len(plain.split()) <= _MOST_TITLE_WORDS
    begins = rest[0].text.lstrip()[:1]
    is_unwrapped = len(text) < _UNWRAPPED * max(len(line.text) for line in rest)
    is_marked = plain.isupper() or _SECTION.match(plain) is not None
    return (is_marked or is_unwrapped) and (begins.isupper() or begins.isdigit() or begins in "(\"'“„«")


def _runs(lines: Sequence[Line], begins: re.Pattern[str]) -> Iterator[Sequence[Line]]:
    """The lines in runs, each of which begins with a line that matches."""
    starts = [place for place, line in enumerate(lines) if place == 0 or begins.match(line.text)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start:end]


def _items(passage: str, block: Block) -> Iterator[Unit]:
    for run in _runs(block.lines, ITEM_MARK):
        yield _of_run(passage, run, Kind.ITEM)


def _messages(passage: str, block: Block) -> Iterator[Unit]:
    for run in _runs(block.lines, STAMP):
        yield _of_run(passage, run, Kind.LINE)


def _rows(_passage: str, block: Block) -> Iterator[Unit]:
    header, rows = "", block.lines
    if len(rows) > 1 and ROW_RULE.match(rows[1].text):
        header, rows = rows[0].text.strip(), rows[2:]
    for line in rows:
        yield replace(_of(line, Kind.ROW), lead=header, context=header)


def _labels(_passage: str, block: Block) -> Iterator[Unit]:
    return (_of(line, Kind.LABEL) for line in block.lines)


def _plain_lines(_passage: str, block: Block) -> Iterator[Unit]:
    return (_of(line, Kind.LINE) for line in block.lines)


def _code(_passage: str, block: Block) -> Iterator[Unit]:
    """Each line with its parents: those above it that are indented less, or head a table of settings."""
    parents: list[Line] = []
    for line in block.lines:
        heads_table = _TABLE_HEAD.match(line.text) is not None
        if heads_table:
            parents = []
        while parents and not _TABLE_HEAD.match(parents[-1].text) and parents[-1].indent >= line.indent:
            parents.pop()
        above = "\n".join(parent.text for parent in parents)
        yield replace(_of(line, Kind.CODE), lead=above, context=above)
        if heads_table or line.text.rstrip().endswith((":", "{", "(", "[")):
            parents.append(line)


def _of(line: Line, kind: Kind) -> Unit:
    return Unit(line.text.strip(), kind, line.start + line.indent, indent=line.indent)


def _of_run(passage: str, run: Sequence[Line], kind: Kind) -> Unit:
    start = run[0].start + run[0].indent
    return Unit(passage[start : run[-1].end].rstrip(), kind, start)


_UNITS: dict[Shape, Callable[[str, Block], Iterator[Unit]]] = {
    Shape.PROSE: _prose,
    Shape.HEADING: _labels,
    Shape.LIST: _items,
    Shape.TABLE: _rows,
    Shape.MAIL: _labels,
    Shape.MESSAGES: _messages,
    Shape.LINES: _plain_lines,
    Shape.CODE: _code,
}


def _with_context(found: Sequence[Unit]) -> Iterator[Unit]:
    """Each unit with the labels above it, and the line that introduces its list or table.

    That line and a question lead the quotation; a title does not, since it is shown with the source.
    """
    labels: list[str] = []
    introduction = ""
    before: Unit | None = None
    for unit in found:
        if unit.kind is Kind.LABEL:
            labels = [*labels, unit.text] if before and before.kind is Kind.LABEL else [unit.text]
            introduction = ""
            yield unit
        else:
            if before and before.kind is not Kind.LABEL and before.block != unit.block:
                introduces = unit.kind in (Kind.ITEM, Kind.ROW) or before.text.endswith(":")
                introduction = before.text if introduces else ""
            asked = labels[-1].lstrip("# ") if labels and is_question(labels[-1]) else ""
            yield replace(
                unit,
                context=" ".join(filter(None, [*labels, introduction, unit.context])),
                lead=unit.lead or introduction or asked,
            )
        before = unit
