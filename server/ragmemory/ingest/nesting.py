"""Headings of settings by their nesting: keys of YAML and JSON, and items of lists. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

from ragmemory.ingest.candidates import MAX_TITLE, Candidate

# The patterns begin with the previous line end: searching for "^" takes ten times as long.
# A key of YAML or JSON; what follows one that has others below it, in its line and in the next; a text of
# several lines as its value.
PAIR = re.compile(
    r"\n[ \t]*+(?:- ++|(?<=[ \t])\{[ \t]*\r?\n[ \t]*+(?=\"))*+"
    r"((?:\"[^\"\n]*\"|'[^'\n]*'|[\w$@/.-][^\"'#\n:]*):)(?= |\r?\n)"
)
NO_VALUE = re.compile(r"[ \t]*+[{[]?+[ \t]*+(?:#.*)?\r?(?=\n)")
BLOCK = re.compile(r"[ \t]*+[|>][-+\d]*[ \t]*\r?\n")
OTHER = re.compile(r"\n[ \t]*+(?![\r\n#}\]]|\Z)")
# A key and a value that may name an item of a list: "- alert: DiskFull", "- name: Install nginx". The groups
# are the key, the quotation mark and the value, which has no escape sequence.
NAMING = re.compile(
    r"(?i)[\"']?(\w*(?:name|title|id)|alert|record)[\"']?:[ \t]++(?!\"[^\n]*\\)"
    r"([\"']?)([^\"'\n{[&*!|>#][^\n]{0,200}?)\2,?+[ \t]*+(?:(?<=[ \t])#.*)?\r?(?=\n)"
)
# Values that are no names; the last one is of a hash or UUID.
NO_NAME = re.compile(r"(?i)null|true|false|[\W\d_]*|(?=.*\d)[\da-f-]{7,}")
# Lines of an item below its first that are looked at, and the fewest: a pair has one, such as "value: 3".
MAX_LINES, MIN_LINES = 12, 2
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
    if len(PAIR.findall(beginning)) < MIN_PAIRS * len(OTHER.findall(beginning)):
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
    is_array = framed[1:2] == "["  # of JSON: it has records, not settings
    text = -1  # the indentation of a key with a text of several lines
    for pair in PAIR.finditer(framed):
        indent = len(pair[0]) - 1 - len(pair[0].lstrip())
        if 0 <= text < indent:
            continue
        column = pair.start(1) - 1 - framed.rindex("\n", 0, pair.start(1))
        is_item = column > indent
        text = indent if BLOCK.match(framed, pair.end()) else -1
        outer = [rank for rank in open_ranks if rank < 2 * indent + is_item]
        if len(outer) < len(open_ranks):
            yield Candidate(pair.start(), pair.start(), "key", open_ranks[len(outer)], "")
        open_ranks = outer
        title = _name(framed, pair.start(1), column) if is_item else ""
        rank = 2 * indent + 1 if title else 2 * column
        if not title and not is_array and NO_VALUE.match(framed, pair.end()):
            below = OTHER.search(framed, pair.end())
            inner = len(below[0]) - 1 if below else -1
            is_list = inner == column and not is_item and below and framed.startswith("- ", below.end())
            title = pair[1].strip("\"':") if inner > column or is_list else ""
        if title:
            yield Candidate(pair.start(), pair.start(), "key", rank, title)
            open_ranks = [*outer, rank]


def _name(framed: str, start: int, column: int) -> str:
    """The name of an item of a list whose first key begins at `start`, in `column`; "" if it has none.

    That is its name or title, else the first value that may name it. Only a first key may be an id of
    something else: "orderId".
    """
    rest = takewhile(lambda line: len(line[0]) > column, OTHER.finditer(framed, start))
    below = list(islice(rest, MAX_LINES))
    if len(below) < MIN_LINES:
        return ""
    names = dict[str, str]()
    for at in (start, *(line.end() for line in below if len(line[0]) - 1 == column)):
        found = NAMING.match(framed, at)
        if found and len(found[3]) <= MAX_TITLE and not NO_NAME.fullmatch(found[3]):
            key = found[1].lower()
            if at == start or key == "id" or not key.endswith("id"):
                names[key] = found[3]
    return names.get("name") or names.get("title") or next(iter(names.values()), "")
