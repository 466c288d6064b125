"""Lists and tables in text, also in text that is not Markdown: entries, ends, introductions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from ragcommon.text.rules import heading_of, is_row

# The most characters of an average entry: longer ones are sections.
MAX_ENTRY = 500
# What an item begins with: "•", "a)", "(2)", "3a.", "1ª)", "IV.", "①", "一、"; not a rule, "* * *".
_MARK = re.compile(
    r"\s*+(?!(?:[-*+]\s+){2,}[-*+]?\s*$)"
    r"(?:(?:[-*+•·–‣◦▪■□●○➢✓✔☐☑\uf0b7\uf0a7]|o(?=\s\s)"
    r"|\(?(?:\d{1,9}[a-z]?|[^\W\d_]|[ivx]{2,5}|[IVX]{2,5})[ªº°]?[.)])(?=\s|$)"
    r"|[①-⑳・]|[(（]?(?:\d{1,3}|[一二三四五六七八九十]{1,3})[、．）])"
)
_WORD = re.compile(r"[^\W_]+")


@dataclass
class TextList:
    """The first and last line of a list, from 0; the columns where its marks begin and end, and their kind.

    `count` is the number of its entries; `entries` are the lines in which they begin, and those inside them.
    A table has its rows.
    """

    first: int
    last: int
    indent: int
    end: int
    kind: str
    entries: list[int]
    count: int = 1


def begins_entry(line: str) -> bool:
    """Whether a line begins an item of a list, or is a row of a table in Markdown."""
    return is_row(line) or _MARK.match(line) is not None


def lists_in(lines: Sequence[str], longest: float = MAX_ENTRY) -> Iterator[TextList]:
    """The tables, and the lists whose average entry has `longest` characters or fewer; inner ones first."""
    for one in _lists_and_sections(lines):
        size = sum(len(line) + 1 for line in lines[one.first : one.last + 1])
        if one.kind == "|" or size <= longest * one.count:
            yield one


def _lists_and_sections(lines: Sequence[str]) -> Iterator[TextList]:
    """Also what is numbered like a list.

    As in Markdown, a line that is not indented as far as the text of an entry ends a list only after an empty
    line. Fenced code ends none: often it is part of an entry, but not indented.
    """
    is_open, after_empty, is_code, depth = list[TextList](), True, False, inf
    for at, line in enumerate(lines):
        text = line.expandtabs()
        if not (bare := text.lstrip()):
            after_empty = True
            continue
        indent = len(text) - len(bare)
        is_fence = _is_fence(bare)
        if is_fence and not is_code:
            depth = indent if after_empty else inf
        if is_fence or is_code:
            is_code ^= is_fence
        elif heading_of(line):
            yield from reversed(is_open)
            is_open = []
        elif mark := _MARK.match(text) or is_row(text):
            end, kind = (
                (indent + 1, "|") if mark is True else (mark.end(), _WORD.sub(_kind_of, mark[0].strip()))
            )
            same = [one for one in is_open if one.kind == kind and (one.indent == indent or one.end == end)]
            while is_open and is_open[-1] not in same and (same or is_open[-1].indent > indent):
                yield is_open.pop()
            if same:
                same[-1].count += 1
            else:
                is_open.append(TextList(at, at, indent, end, kind, []))
            for one in is_open:
                one.entries.append(at)
        elif after_empty:
            while is_open and is_open[-1].end > indent:
                yield is_open.pop()
        for one in is_open:
            one.last = at if depth > one.indent else one.last
        after_empty = is_fence
        depth = depth if is_code else inf
    yield from reversed(is_open)


def _is_fence(line: str) -> bool:
    return line.startswith("```") and "`" not in line.lstrip("`")


def _kind_of(number: re.Match[str]) -> str:
    first = number[0][0]
    return "1" if first.isdigit() else "A" if first.isupper() else "a"


def introduction(lines: Sequence[str], first: int) -> int:
    """The first line of the paragraph or entry that introduces a list, or the first one of the list."""
    at = next((at for at in range(first - 1, max(-1, first - 4), -1) if lines[at].strip()), -1)
    if at < 0 or _ends_above(lines[at]):
        return first
    while at > 0 and not begins_entry(lines[at]) and not _ends_above(lines[at - 1]):
        at -= 1
    return at


def _ends_above(line: str) -> bool:
    return not line.strip() or heading_of(line) is not None or _is_fence(line.lstrip())
