"""Split source code into blocks: a section for each function and class, under its qualified name.

Pure; the blocks concatenate to the text. A text that cannot be parsed is split at its blank lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from ragmemory.code.syntax import Code, parse
from ragmemory.ingest.blocks import BLANK_LINES, MAX_PATH, Block, paragraphs
from ragmemory.text.languages import Language

# Neighbours share a section of up to this many bytes: a lone constant or getter is hard to find by search.
_SHARED = 500
# A longer section (bytes) is cut at its blank lines.
_LONG = 1_500
_BLANK_LINES = re.compile(BLANK_LINES.pattern.encode())
# Only closes a class or module.
_CLOSING = re.compile(rb"[^\w\x80-\xff]*(?:end\b[^\w\x80-\xff]*)*")


class _Section(Struct, frozen=True):
    """A byte range of a text, and the qualified names of its definitions."""

    start: int
    end: int
    names: tuple[str, ...]


def code_blocks(text: str, language: Language) -> Iterator[Block]:
    """The blocks of source code."""
    code = parse(text, language)
    if code is None:
        yield from paragraphs(text)
        return
    start = at = 0
    for number, group in enumerate(_groups(code.data, _sections(code)), 1):
        heading = _heading(group)
        for section in group:
            symbol = _heading([section]) if len(group) > 1 else ""
            for end in _ends(code.data, section):
                begin, start = start, start + len(code.data[at:end].decode())
                at = end
                yield Block(begin, start, number, heading, "code", symbol=symbol)


def _sections(code: Code) -> Iterator[_Section]:
    """One section per function, per class up to its first function, and per range between them."""
    start, names = 0, tuple[str, ...]()
    for offset, next_names in _bounds(code):
        if offset > start:
            yield _Section(start, offset, names)
            start = offset
        names = next_names
    if start < len(code.data):
        yield _Section(start, len(code.data), names)


def _bounds(code: Code) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The starts of sections, ascending, and their names."""
    stack = [(len(code.data), tuple[str, ...]())]
    last = 0
    for definition in code.definitions:
        if definition.in_function or definition.kind == "value":
            continue
        start = _line_start(code.data, definition.start)
        while stack[-1][0] <= definition.start:
            last = max(last, stack.pop()[0])
            yield last, stack[-1][1]
        last = max(last, start)
        names = (code.qualified(definition.names),)
        yield last, names
        stack.append((_line_end(code.data, definition.end), names))
    while len(stack) > 1:
        last = max(last, stack.pop()[0])
        yield last, stack[-1][1]


def _line_start(data: bytes, offset: int) -> int:
    """The beginning of the line, if only white space is before the offset."""
    start = data.rfind(b"\n", 0, offset) + 1
    return offset if data[start:offset].strip() else start


def _line_end(data: bytes, offset: int) -> int:
    """The beginning of the next line, if only punctuation is after the offset."""
    end = data.find(b"\n", offset) + 1 or len(data)
    return offset if data[offset:end].strip(b" \t\r\n;,)") else end


def _groups(data: bytes, sections: Iterable[_Section]) -> Iterator[list[_Section]]:
    """Group small neighbours, and join closing brackets with the section before them."""
    group: list[_Section] = []
    for section in sections:
        if group and _CLOSING.fullmatch(data, section.start, section.end):
            group[-1] = _Section(group[-1].start, section.end, group[-1].names)
            continue
        if group and (section.end - group[0].start > _SHARED or len(_heading([*group, section])) > MAX_PATH):
            yield group
            group = []
        group.append(section)
    if group:
        yield group


def _heading(group: Iterable[_Section]) -> str:
    return ", ".join(dict.fromkeys(name for section in group for name in section.names))


def _ends(data: bytes, section: _Section) -> Iterator[int]:
    """The ends of the blocks of a section: at blank lines if it is long."""
    if section.end - section.start > _LONG:
        yield from (match.end() for match in _BLANK_LINES.finditer(data, section.start, section.end - 1))
    yield section.end
