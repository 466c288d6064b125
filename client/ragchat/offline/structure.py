"""A passage cut into units that can be quoted by themselves, by the structure of its text. Pure.

A unit is a verbatim part of the passage: a sentence of prose, a list item, a table row, a line of settings or
code, a message of a chat. `context` holds the words that name it without being part of it: a table's header
row, the line that introduces a list, the parents of a setting, the question above an answer. A table of
contents has no units: it says only what the headings say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from ragchat.offline.code import MOST_LINES, parts
from ragchat.offline.layout import (
    CONTENTS_ENTRY,
    ITEM_MARK,
    ROW_RULE,
    STAMP,
    Block,
    Line,
    Shape,
    blocks,
)
from ragchat.offline.records import fields, named_fields, record_spans, separator_of
from ragchat.offline.sentences import sentence_spans
from ragconfig.text_rules import name_columns


class Kind(Enum):
    SENTENCE = "sentence"
    ITEM = "item"  # of a list
    ROW = "row"  # of a table
    RECORD = "record"  # of a CSV file
    LINE = "line"  # of a chat, an address, a form: line breaks matter
    CODE = "code"  # a line of code or settings, a signature with its docstring, an entry of a log
    LABEL = "label"  # names what follows: a title, a question, a salutation
    FIELD = "field"  # of a mail's header: a label, but for questions about the mail itself


@dataclass(frozen=True)
class Unit:
    """`text` is passage[start:end]. Units of one `block` may be quoted together.

    `lead` is the part of the context without which a quotation cannot be understood; it is shown with it.
    `reading` is the text as a person reads it.
    """

    text: str
    kind: Kind
    start: int
    block: int = 0
    context: str = ""
    lead: str = ""
    indent: int = 0  # of the line that it begins
    fields: str = ""  # of a record: `column: value`, …

    @property
    def is_label(self) -> bool:
        return self.kind in (Kind.LABEL, Kind.FIELD)

    @property
    def is_heading(self) -> bool:
        """Whether it is a heading of Markdown."""
        return self.kind is Kind.LABEL and self.text.startswith("#")

    @property
    def reading(self) -> str:
        return self.fields or self.text

    @property
    def end(self) -> int:
        return self.start + len(self.text)


_ENDS = re.compile(r"[.!?…。！？:;,][\"'”’»)\]*_]*\s*$")
_ASKS = re.compile(r"[?？][\s*_\"'”’»)\]]*$")
_SECTION = re.compile(r"(?:§\s*)?(?:[IVXLC]+|\d+(?:\.\d+)*)[.)]?\s+\S|\w+\s\d+[.:]?(?:\s|$)")
_SALUTATION = re.compile(
    r"(?:hello|hi|hey|dear|good (?:morning|afternoon|evening)|hallo|liebe[rs]?|sehr geehrte[rs]?|moin|guten"
    r" (?:tag|morgen|abend)|bonjour|bonsoir|chère?s?|salut|hola|estimad[oa]s?|querid[oa]s?|ciao|buongiorno"
    r"|car[oaie])\b[^.?:;]{0,40}[,!]$",
    re.IGNORECASE,
)
_CONTENTS = re.compile(
    r"[\W\d]*(?:(?:table of )?contents|inhalt(?:sverzeichnis)?|sommaire|table des matières|índice|contenido)"
    r"\W*$",
    re.IGNORECASE,
)
# In a signature, a number or an address tells something; the rest only names the writer.
_CONTACT = re.compile(r"\d|@|://|www\.")
# What may be the name below a letter, and the formula above that name: "Fair winds".
_NAME = re.compile(r"\s*[^\W\d_a-z][\w'’.-]*(?:\s[^\W\d_a-z][\w'’.-]*){0,2}\s*")
_FORMULA = re.compile(r"\s*[^\W\d_][\w'’-]*(?:\s[^\W\d_][\w'’-]*){0,3}[,!]?\s*")
_MOST_SIGNATURE_LINES = 3
_NUMBER = re.compile(r"\s*(\d+)[.)]")
# A title is a short line.
_MOST_TITLE_CHARACTERS = 70
_MOST_TITLE_WORDS = 8
# A line this much shorter than the longest one of its paragraph was not wrapped.
_UNWRAPPED = 0.6


def is_question(text: str) -> bool:
    """Whether a text asks, as in a transcript: it has the words of a question, not the answer."""
    return bool(_ASKS.search(text))


def units(passage: str, uri: str = "", *, has_header: bool = True) -> list[Unit]:
    """The quotable parts of a passage in their order.

    `has_header`: the first line of a CSV passage can be the names of the columns.
    """
    found = [
        replace(unit, block=number)
        for number, block in enumerate(_with_signature(list(blocks(passage, uri))))
        for unit in (
            _records(passage, has_header=has_header)
            if block.shape is Shape.RECORDS
            else _UNITS[block.shape](passage, block)
        )
    ]
    return [
        unit for unit in _with_context(list(_without_contents(found))) if any(map(str.isalnum, unit.text))
    ]


def _with_signature(every: Sequence[Block]) -> Iterator[Block]:
    """The blocks of a text; the last lines of a letter are its signature, whatever formula they have."""
    in_letter = False
    for block, after in zip(every, [*every[1:], None], strict=False):
        body = len(block.lines)
        if (
            in_letter
            and block.shape in (Shape.PROSE, Shape.LINES)
            and (not after or after.shape is Shape.MAIL)
        ):
            body = _signature_start(block.lines)
        if body:
            yield replace(block, lines=block.lines[:body])
        if body < len(block.lines):
            yield Block(Shape.SIGNATURE, block.lines[body:])
        in_letter = in_letter or block.shape is Shape.MAIL or bool(_SALUTATION.match(block.lines[0].text))


def _signature_start(lines: Sequence[Line]) -> int:
    """Where a closing formula and the name below it begin: after the last line if there is none."""
    start = len(lines)
    if _NAME.fullmatch(lines[-1].text):
        start -= 1
        while (
            start and len(lines) - start < _MOST_SIGNATURE_LINES and _FORMULA.fullmatch(lines[start - 1].text)
        ):
            start -= 1
    is_apart = start == 0 or _ENDS.search(lines[start - 1].text)
    return start if is_apart else len(lines)


def _without_contents(found: Sequence[Unit]) -> Iterator[Unit]:
    """The units without the list below a heading such as "Contents"."""
    heading = ""
    for unit in found:
        heading = unit.text if unit.is_label else heading
        if not (unit.kind in (Kind.ITEM, Kind.LINE) and _CONTENTS.match(heading)):
            yield unit


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
    if _SALUTATION.match(plain):
        return True
    if len(plain) > _MOST_TITLE_CHARACTERS or _ENDS.search(plain):
        return is_question(plain)
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
    runs = list(_runs(block.lines, ITEM_MARK))
    for place, run in enumerate(runs):
        if place == len(runs) - 1 and _heads_section(runs):
            yield _of(run[0], Kind.LABEL)
        elif not CONTENTS_ENTRY.search(run[0].text):
            yield _of_run(passage, run, Kind.ITEM)


def _heads_section(runs: Sequence[Sequence[Line]]) -> bool:
    """Whether the last item of a list is a numbered heading: a short line apart that counts from 1."""
    [first, *more] = runs[-1]
    number, title = _NUMBER.match(first.text), ITEM_MARK.sub("", first.text, count=1)
    is_apart = len(runs) == 1 or (first.after_gap and number is not None and number.group(1) == "1")
    return number is not None and is_apart and not more and _is_title(title, [])


def _messages(passage: str, block: Block) -> Iterator[Unit]:
    for run in _runs(block.lines, STAMP):
        yield _of_run(passage, run, Kind.LINE)


def _rows(_passage: str, block: Block) -> Iterator[Unit]:
    header, rows = "", block.lines
    if len(rows) > 1 and ROW_RULE.match(rows[1].text):
        header, rows = rows[0].text.strip(), rows[2:]
    for line in rows:
        yield replace(_of(line, Kind.ROW), lead=header, context=header)


def _records(passage: str, *, has_header: bool) -> Iterator[Unit]:
    """The records of a CSV file, each with the names of the columns."""
    spans = list(record_spans(passage))
    separator = separator_of(passage[slice(*spans[0])]) if spans else ","
    columns = fields(passage[slice(*spans[0])], separator) if spans and has_header else []
    if not name_columns(columns):
        columns = []
    for start, end in spans[bool(columns) :]:
        record = passage[start:end]
        yield Unit(
            record, Kind.RECORD, start, fields=named_fields(columns, fields(record, separator)) or record
        )


def _no_units(_passage: str, _block: Block) -> Iterator[Unit]:
    return iter(())


def _labels(_passage: str, block: Block) -> Iterator[Unit]:
    return (_of(line, Kind.LABEL) for line in block.lines)


def _mail_fields(_passage: str, block: Block) -> Iterator[Unit]:
    return (_of(line, Kind.FIELD) for line in block.lines)


def _signature(_passage: str, block: Block) -> Iterator[Unit]:
    """Its lines: those with a number or an address tell something, under the names above them."""
    names: list[str] = []
    for line in block.lines:
        if line.text.rstrip().endswith((",", "!")):  # the closing formula
            continue
        if _CONTACT.search(line.text):
            above = "\n".join(names)
            yield replace(_of(line, Kind.LINE), lead=above, context=above)
        else:
            unit = _of(line, Kind.LABEL)
            names.append(unit.text)
            yield unit


def _plain_lines(_passage: str, block: Block) -> Iterator[Unit]:
    """Its lines; a question with its answer below it names the answer."""
    for line, below in zip(block.lines, [*block.lines[1:], None], strict=True):
        has_answer = below is not None and not is_question(below.text)
        yield _of(line, Kind.LABEL if is_question(line.text) and has_answer else Kind.LINE)


def _code(passage: str, block: Block) -> Iterator[Unit]:
    """Each part with its parents."""
    for part in parts(block.lines):
        above = "\n".join(parent.text for parent in part.parents if any(map(str.isalnum, parent.text)))
        indent = part.lines[0].indent
        yield replace(_of_run(passage, part.lines, Kind.CODE), lead=above, context=above, indent=indent)


def _log(passage: str, block: Block) -> Iterator[Unit]:
    """Each entry; the lines of a very long one have its first line above them."""
    for run in _runs(block.lines, STAMP):
        if len(run) <= MOST_LINES:
            yield _of_run(passage, run, Kind.CODE)
            continue
        for line in run:
            above = run[0].text if line is not run[0] else ""
            yield replace(_of(line, Kind.CODE), lead=above, context=above)


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
    Shape.CONTENTS: _no_units,
    Shape.MAIL: _mail_fields,
    Shape.SIGNATURE: _signature,
    Shape.MESSAGES: _messages,
    Shape.LINES: _plain_lines,
    Shape.CODE: _code,
    Shape.LOG: _log,
}


def _with_context(found: Sequence[Unit]) -> Iterator[Unit]:
    """Each unit with the labels above it, and the line that introduces its list or table.

    That line and a question lead the quotation; a title does not, since it is shown with the source. The last
    of several sentences introduces a list only with a colon.
    """
    labels: list[str] = []
    introduction = ""
    before: Unit | None = None
    is_alone = True  # `before` is the first of its block, perhaps the only one
    for unit, after in zip(found, [*found[1:], None], strict=False):
        if unit.is_label:
            follows = before and (before.kind is unit.kind or before.is_heading)
            labels = [*labels, unit.text] if follows else [unit.text]
            introduction = ""
            yield unit
        else:
            if before and not before.is_label and before.block != unit.block:
                lists = unit.kind in (Kind.ITEM, Kind.ROW) and is_alone
                introduction = before.text if lists or before.text.endswith(":") else ""
            asked = labels[-1].lstrip("# ") if labels and is_question(labels[-1]) else ""
            yield replace(
                unit,
                kind=Kind.LABEL if _only_introduces(unit, after) else unit.kind,
                context=" ".join(filter(None, [*labels, introduction, unit.context])),
                lead=unit.lead or introduction or asked,
            )
        is_alone = before is None or before.block != unit.block
        before = unit


def _only_introduces(unit: Unit, after: Unit | None) -> bool:
    """Whether a unit is a short line such as "Bring:" above what it introduces."""
    is_short = len(unit.text.split()) <= _MOST_TITLE_WORDS and not any(map(str.isdigit, unit.text))
    is_prose = unit.kind in (Kind.SENTENCE, Kind.LINE)
    return (
        is_prose and is_short and unit.text.endswith(":") and after is not None and after.block != unit.block
    )
