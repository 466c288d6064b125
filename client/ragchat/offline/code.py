"""Code and settings in parts to quote: a line with its comment, a signature with its docstring. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragchat.offline.layout import Line

# A longer comment, docstring or list of parameters is quoted line by line.
MOST_LINES = 12

_COMMENT = re.compile(r"\s*(?://|#(?![!\[]|include|define|if|endif|pragma)|--\s|;|/\*|\*(?:\s|/|$))")
# Decorators, annotations and attributes stand between a comment and what it is about.
_DECORATOR = re.compile(r"\s*(?:@\w|#!?\[)")
_DEFINITION = re.compile(r"\s*(?:async\s+)?(?:def|class)\s")
_DOCSTRING = re.compile(r"""\s*[rRuU]?(\"""|''')""")
# Of a table of TOML, or a section of an INI file.
_TABLE_HEAD = re.compile(r"\[{1,2}[^\[\]]+\]{1,2}\s*(?:[#;].*)?$")
_ELEMENT = re.compile(r"\s*-\s+\S")  # of a list in YAML
_OPENS = (":", "{", "(", "[")


@dataclass(frozen=True)
class Part:
    """Lines that are quoted together, and those above that they are nested in."""

    lines: Sequence[Line]
    parents: Sequence[Line]


def parts(lines: Sequence[Line]) -> Iterator[Part]:
    """The parts of a block, in order."""
    parents: list[tuple[int, Sequence[Line]]] = []  # with the indentation of what is nested in none of them
    place = 0
    while place < len(lines):
        head = _head(lines, place)
        signature_end = _signature_end(lines, head)
        end = _docstring_end(lines, head, signature_end)
        line, signature = lines[head], lines[head:signature_end]
        heads_table = _TABLE_HEAD.match(line.text) is not None
        if heads_table:
            parents = []
        while parents and parents[-1][0] >= line.indent:
            parents.pop()
        yield Part(lines[place:end], [above for _, nested in parents for above in nested])
        if heads_table:
            parents.append((-1, signature))
        elif signature[-1].text.rstrip().endswith(_OPENS) or _ELEMENT.match(line.text):
            parents.append((line.indent, signature))
        elif place and _is_element(lines[place - 1]):  # the first key of an object often names it
            parents.append((line.indent - 1, signature))
        place = end


def _is_element(line: Line) -> bool:
    """Whether a line of JSON opens an object of an array."""
    return line.text.strip() == "{" and line.indent > 0


def _head(lines: Sequence[Line], place: int) -> int:
    """The place of the line that a comment from `place` on is about; `place` if there is no comment."""
    first, end = lines[place], place
    while end < len(lines) and end - place <= MOST_LINES:
        line = lines[end]
        if end > place and line.after_gap:
            return place
        if not (_COMMENT.match(line.text) or _DECORATOR.match(line.text)):
            is_about = abs(line.indent - first.indent) <= 1  # " *" of a comment is indented by one
            return end if is_about else place
        end += 1
    return place


def _signature_end(lines: Sequence[Line], head: int) -> int:
    """The place behind a line, and behind its parameters if they stand on lines of their own."""
    line = lines[head]
    if line.text.rstrip().endswith("("):
        for end in range(head + 1, min(head + MOST_LINES, len(lines))):
            if lines[end].indent <= line.indent:
                return end + 1 if lines[end].text.lstrip().startswith(")") else head + 1
    return head + 1


def _docstring_end(lines: Sequence[Line], head: int, signature_end: int) -> int:
    """The place behind the docstring of a definition in Python, or behind its first paragraph."""
    opens = _DOCSTRING.match(lines[signature_end].text) if signature_end < len(lines) else None
    if opens is None or not _DEFINITION.match(lines[head].text):
        return signature_end
    quotes = opens.group(1)
    paragraph = 0
    for end in range(signature_end, min(signature_end + MOST_LINES, len(lines))):
        if end > signature_end and lines[end].after_gap:
            paragraph = paragraph or end
        if quotes in (lines[end].text[opens.end() :] if end == signature_end else lines[end].text):
            return end + 1
    return paragraph or signature_end
