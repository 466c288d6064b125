"""The layout of a text: blocks of lines that belong together, such as paragraphs, lists, tables. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from ragconfig.text_rules import atx_heading


class Shape(Enum):
    PROSE = "prose"
    HEADING = "heading"
    LIST = "list"
    TABLE = "table"  # of Markdown
    RECORDS = "records"  # of a CSV or TSV file
    CONTENTS = "contents"  # a table of contents
    MAIL = "mail"  # the header fields of a mail
    SIGNATURE = "signature"  # of a mail, with the closing formula
    MESSAGES = "messages"  # of a chat, each with its time
    LINES = "lines"  # of settings, an address, a poem: line breaks matter
    CODE = "code"
    LOG = "log"  # entries of a log, each with its time
    RULE = "rule"  # a line between blocks


@dataclass(frozen=True)
class Line:
    start: int  # in the text
    text: str  # without its line break
    after_gap: bool = False  # below an empty line

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip())

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True)
class Block:
    shape: Shape
    lines: Sequence[Line]


# A list item's mark, with the space behind it.
ITEM_MARK = re.compile(r"\s*(?:[-*+•–]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+(?=\S)")
# A date or a time that opens a line, as in logs and exported chats.
STAMP = re.compile(
    r"^\s*[\[(<]?(?:[A-Z]+\s+)?"
    r"(?:\d{1,4}[-./]\d{1,2}[-./]\d{1,4}(?:\b|T)|\d{1,2}:\d{2}\b|[A-Z][a-z]{2}\s+\d{1,2}\s+\d{1,2}:\d{2}\b"
    r"|\d{1,2}[./]\d{1,2}\.?,?\s+\d{1,2}:\d{2}\b)"
)
ROW_RULE = re.compile(r"\s*\|[\s:|-]*-[\s:|-]*\|?\s*$")

_FENCE = re.compile(r"\s*(```|~~~)")
_RULE = re.compile(r"\s*(?:={3,}|-{3,}|\*{3,}|_{3,})\s*$")
_ROW = re.compile(r"\s*\|.*\|\s*$")
_FIELD = re.compile(r"^\s*[*_]{0,2}\w[\w .'/()-]{0,40}[*_]{0,2}\s?[:=][*_]{0,2}\s+\S|^\s*[\w.-]+\s*[:=]\s*\S")
# An entry of a table of contents: a link within the document, or a title with dots up to its page.
CONTENTS_ENTRY = re.compile(
    r"^\s*(?:[-*+•–]\s+|\(?\w[\d.]*[.)]?\s+)?\[[^\]]+\]\(#[^)]*\)\s*$|[.…·](?:\s?[.…·]){3,}\s*\d+\s*$"
)
_CLOSING = re.compile(
    r"\W*(?:[\w']+\s){0,3}?(?:regards|sincerely|cheers|wishes|the best|many thanks|thanks|thank you|yours"
    r"|love|grüße[n]?|grüsse[n]?|gru(?:ß|ss)|mfg|lg|vg|dank|cordialement|amicalement|salutations|bien à vous"
    r"|saludos|atentamente|abrazos?|saluti|groet(?:en)?)(?:\s[\w']+){0,3}[,!]?\s*$",
    re.IGNORECASE,
)
_MAIL_FIELD = re.compile(
    r"[*_]{0,2}(?:from|to|cc|bcc|date|subject|sent|reply-to|von|an|datum|betreff|gesendet|de|à|objet|envoyé|para|asunto"
    r"|enviado)\s?:[*_]{0,2}\s",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"[{};]\s*$|^\s*(?:def|class|return|import|from|if|for|while|function|const|let|var|fn|pub)\b.*[:;({]?$"
)
_SETTINGS_SUFFIXES = (".toml", ".ini", ".cfg", ".conf", ".env", ".yaml", ".yml", ".json")
_CODE_SUFFIXES = (
    *(*_SETTINGS_SUFFIXES, ".py", ".sh", ".bash"),
    *(".js", ".ts", ".tsx", ".jsx", ".c", ".h", ".cpp", ".hpp", ".cs", ".java", ".kt", ".go", ".rs", ".rb"),
    *(".php", ".pl", ".lua", ".sql", ".r", ".swift", ".scala", ".css", ".xml", ".html", ".log"),
)
_RECORDS_SUFFIXES = (".csv", ".tsv")
# Shorter lines are not wrapped: each of them ends where its writer wanted.
_SHORT_LINE = 48
# A longer line ends the signature above it.
_MOST_SIGNATURE_CHARACTERS = 72


def blocks(text: str, uri: str = "") -> Iterator[Block]:
    """The blocks of a text in their order. Empty lines and rules are in none."""
    if uri.lower().endswith(_RECORDS_SUFFIXES):
        yield Block(Shape.RECORDS, list(_lines(text)))
        return
    open_block: Block | None = None
    gap = False  # an empty line since the last one
    for shape, line in _shapes(_lines(text), is_code=is_code_file(uri)):
        if shape is None:
            gap = True
            continue
        line = replace(line, after_gap=gap)
        if open_block and _continues(open_block, shape, line):
            open_block = replace(open_block, lines=[*open_block.lines, line])
        else:
            if open_block:
                yield _recognized(open_block)
            open_block = None if shape is Shape.RULE else Block(shape, [line])
        gap = False
    if open_block:
        yield _recognized(open_block)


def is_code_file(uri: str) -> bool:
    """Whether a document is code, settings or a log, by the suffix of its URI."""
    return uri.lower().endswith(_CODE_SUFFIXES)


def is_settings_file(uri: str) -> bool:
    """Whether a document consists of keys and their values, by the suffix of its URI."""
    return uri.lower().endswith(_SETTINGS_SUFFIXES)


def _lines(text: str) -> Iterator[Line]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield Line(start, line.rstrip("\r\n"))
        start += len(line)


def _shapes(lines: Iterable[Line], *, is_code: bool) -> Iterator[tuple[Shape | None, Line]]:
    """What each line alone tells of its block; None: the line is empty."""
    fence = ""
    is_signature = False
    for line in lines:
        opened = _FENCE.match(line.text)
        if opened and fence in ("", opened.group(1)):
            fence = "" if fence else opened.group(1)
            yield Shape.RULE, line
        elif fence:
            yield Shape.CODE, line
        elif not line.text.strip():
            yield None, line
        elif is_code:
            yield Shape.CODE, line
        elif line.text.rstrip() == "--":  # the line above a signature
            is_signature = True
            yield Shape.RULE, line
        else:
            is_signature = _in_signature(line.text, is_signature=is_signature)
            yield Shape.SIGNATURE if is_signature else _shape(line.text), line


def _in_signature(text: str, *, is_signature: bool) -> bool:
    """Whether a line is part of a signature, after one that is (`is_signature`), or opens one."""
    if is_signature:
        ends = (
            len(text) > _MOST_SIGNATURE_CHARACTERS
            or _MAIL_FIELD.match(text)
            or _shape(text) is not Shape.PROSE
        )
        return not ends
    return len(text) < _SHORT_LINE and _CLOSING.match(text) is not None


def _shape(text: str) -> Shape:
    if _RULE.match(text):
        return Shape.RULE
    if atx_heading(text):
        return Shape.HEADING
    if _ROW.match(text):
        return Shape.TABLE
    return Shape.LIST if ITEM_MARK.match(text) else Shape.PROSE


def _continues(block: Block, shape: Shape, line: Line) -> bool:
    """Whether a line belongs to the block above it; what is indented does, also after an empty line."""
    gap = line.after_gap
    if block.shape is Shape.LIST:
        return shape is Shape.LIST or (shape is Shape.PROSE and (line.indent > 0 or not gap))
    if shape is Shape.HEADING or shape is not block.shape:
        return False
    return not gap or shape is Shape.SIGNATURE or (shape is Shape.CODE and line.indent > 0)


def _recognized(block: Block) -> Block:
    """The block with the shape that its lines have together."""
    if block.shape is Shape.CODE and STAMP.match(block.lines[0].text):
        return replace(block, shape=Shape.LOG)
    return replace(block, shape=_unmarked(block.lines)) if block.shape is Shape.PROSE else block


def _unmarked(lines: Sequence[Line]) -> Shape:
    """The shape of lines that have no marks: most of them must agree."""
    texts = [line.text for line in lines]

    def most(pattern: re.Pattern[str]) -> bool:
        return sum(bool(pattern.search(text)) for text in texts) * 2 > len(texts)

    if most(STAMP):
        return Shape.MESSAGES
    if most(CONTENTS_ENTRY):
        return Shape.CONTENTS
    if len(texts) == 1:
        return Shape.PROSE
    if _MAIL_FIELD.match(texts[0]) and _MAIL_FIELD.match(texts[1]):
        return Shape.MAIL
    if most(_CODE):
        return Shape.CODE
    is_short = all(len(text) < _SHORT_LINE for text in texts)
    return Shape.LINES if is_short or most(_FIELD) else Shape.PROSE
