"""Headings of settings by their nesting: keys of YAML and JSON, and items of lists. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from ragmemory.ingest.candidates import MAX_TITLE, Candidate

# The patterns begin with the previous line end: searching for "^" takes ten times as long.
# A key of YAML or JSON; what follows one that has others below it, in its line and in the next; a text of
# several lines as its value.
PAIR = re.compile(r"\n[ \t]*+(?:- ++)*+(?:\"[^\"\n]*\"|'[^'\n]*'|[\w$@/.-][^\"'#\n:]*):(?= |\r?\n)")
NO_VALUE = re.compile(r"[ \t]*+[{[]?+[ \t]*+(?:#.*)?\r?(?=\n)")
BLOCK = re.compile(r"[ \t]*+[|>][-+\d]*[ \t]*\r?\n")
OTHER = re.compile(r"\n[ \t]*+(?![\r\n#}\]]|\Z)")
# The key and the value that name an item of a list: "- alert: DiskFull", "- name: Install nginx".
NAMING = re.compile(r"(?i)[\"']?(?:\w*(?:name|title|id)|alert|record)\b")
VALUE = re.compile(r"[ \t]++([\"']?)([^\"'\n{[&*!|>#][^\n]{0,200}?)\1[ \t]*+(?:(?<=[ \t])#.*)?\r?(?=\n)")
# The documents of a file of Kubernetes, and their names.
DOCUMENT = re.compile(r"\n---[ \t]*(?:#.*)?\r?(?=\n)|\A(?=\n)")
KIND = re.compile(r"\nkind:[ \t]+([\w.-]+)")
NAME = re.compile(r"\nmetadata:[ \t]*\r?\n( ++)(?:\S.*+\n(?:\1 ++.*+\n)*+\1)*?name:[ \t]+[\"']?([\w.-]+)")
# A comment above what it describes.
COMMENT = re.compile(r"[ \t]*(?:#|;|//)")
# The minimum share of keys among the lines that are neither blank nor comments, and the characters looked at.
MIN_PAIRS = 0.6
SAMPLE = 20_000


def nested(framed: str, ends: Sequence[int]) -> Iterator[Candidate]:
    """The keys with others below them, and without a title where those end.

    Only in a text with little else. `framed` is the text after a line end; `ends` begins with 0 and has the
    ends of its other headings.
    """
    beginning = framed[:SAMPLE]
    # An array of JSON has records, not settings.
    if beginning[1:2] == "[" or len(PAIR.findall(beginning)) < MIN_PAIRS * len(OTHER.findall(beginning)):
        return
    yield from _documents(framed)
    for one in _keys(framed):
        start = _with_comment(framed, one.start, ends[bisect_right(ends, one.start) - 1])
        yield one._replace(start=start, end=start) if start < one.start else one


def _with_comment(framed: str, start: int, least: int) -> int:
    """The start of the comment directly above a line, else of the line."""
    while (above := framed.rfind("\n", least, start)) >= 0 and COMMENT.match(framed, above + 1):
        start = above
    return start


def _documents(framed: str) -> Iterator[Candidate]:
    """The documents of Kubernetes in a text of YAML: their kinds and names."""
    starts = [found.end() for found in DOCUMENT.finditer(framed)]
    for start, end in zip(starts, [*starts[1:], len(framed)], strict=True):
        kind, name = KIND.search(framed, start, end), NAME.search(framed, start, end)
        if kind and name:
            yield Candidate(start, start, "key", -1, f"{kind[1]} {name[2]}")


def _keys(framed: str) -> Iterator[Candidate]:
    """The keys with others below them, and the items of lists, in a text of YAML or JSON.

    The rank of a key is twice its column, and of an item one more than twice that of its dash: it is below a
    key in the same column.
    """
    open_ranks: list[int] = []
    text = -1  # the indentation of a key with a text of several lines
    for pair in PAIR.finditer(framed):
        name = pair[0].lstrip()
        indent = len(pair[0]) - 1 - len(name)
        if 0 <= text < indent:
            continue
        key = name.lstrip("- ")
        column = indent + len(name) - len(key)
        is_item = column > indent
        text = indent if BLOCK.match(framed, pair.end()) else -1
        below = OTHER.search(framed, pair.end())
        inner = len(below[0]) - 1 if below else -1
        outer = [rank for rank in open_ranks if rank < 2 * indent + is_item]
        if len(outer) < len(open_ranks):
            yield Candidate(pair.start(), pair.start(), "key", open_ranks[len(outer)], "")
        open_ranks = outer
        is_named = is_item and NAMING.match(key) and _has_lines(framed, pair.end(), column)
        value = VALUE.match(framed, pair.end()) if is_named else None
        is_list = inner == column and not is_item and below and framed.startswith("- ", below.end())
        if value and len(value[2]) <= MAX_TITLE and any(map(str.isalpha, value[2])):
            rank, title = 2 * indent + 1, value[2]
        elif NO_VALUE.match(framed, pair.end()) and (inner > column or is_list):
            rank, title = 2 * column, key.strip("\"':")
        else:
            continue
        yield Candidate(pair.start(), pair.start(), "key", rank, title)
        open_ranks = [*outer, rank]


def _has_lines(framed: str, start: int, column: int) -> bool:
    """Whether an item of a list has two more lines; one with fewer is a pair, such as a name and a value."""
    for _ in range(2):
        below = OTHER.search(framed, start)
        if not below or len(below[0]) - 1 < column:
            return False
        start = framed.find("\n", below.end())
    return True
