"""Headings of settings by their nesting: keys of YAML and JSON, items of lists, and blocks. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from ragmemory.ingest.candidates import MAX_TITLE, Candidate, squeezed

# The patterns begin with the previous line end: searching for "^" takes ten times as long.
# A key of YAML or JSON; what follows one that has others below it, in its line and in the next; a text of
# several lines as its value.
PAIR = re.compile(r"\n[ \t]*+(?:- ++)*+(?:\"[^\"\n]*\"|'[^'\n]*'|[\w$@/.-][^\"'#\n:]*):(?= |\r?\n)")
NO_VALUE = re.compile(r"[ \t]*+[{[]?+[ \t]*+(?:#.*)?\r?(?=\n)")
BLOCK = re.compile(r"[ \t]*+[|>][-+\d]*[ \t]*\r?\n")
OTHER = re.compile(r"\n[ \t]*+(?![\r\n#}\]]|\Z)")
# The value that names an item of a list: "- alert: DiskFull", "- name: Install nginx".
VALUE = re.compile(r"[ \t]++([\"']?)([^\"'\n{[&*!|>#][^\n]{0,200}?)\1[ \t]*+(?:(?<=[ \t])#.*)?\r?(?=\n)")
# The documents of a file of Kubernetes, and their names.
DOCUMENT = re.compile(r"\n---[ \t]*(?:#.*)?\r?(?=\n)|\A(?=\n)")
KIND = re.compile(r"\nkind:[ \t]+([\w.-]+)")
NAME = re.compile(r"\nmetadata:[ \t]*\r?\n( ++)(?:\S.*+\n(?:\1 ++.*+\n)*+\1)*?name:[ \t]+[\"']?([\w.-]+)")
# A line of other settings, which is no comment; how a block begins, and ends; what names it: "server_name".
LINE = re.compile(r"\n([ \t]*+)(?![#;!}\])]|//|--|</)([^\r\n]++)")
BEGIN = re.compile(
    r"(?P<braces>.*[^\s(){=:])[ \t]*[=:]?[ \t]*\{|<(?P<tag>[A-Z]\w+ [^<>]+)>"
    r"|(?P<words>\w[\w-]*(?: [\w.:/*@+-]+){0,4})"
)
END = re.compile(r"\n[ \t]*+[}\])]+[;,]?\r?(?=\n|\Z)")
NAMED = re.compile(r"\n[ \t]+(?:\w+_)?name\b[ \t=:]+\"?([^\s\";,]+)")
# A comment above what it describes.
COMMENT = re.compile(r"[ \t]*(?:#|;|//)")
# The minimum share of keys among the lines that are neither blank nor comments, of indented lines and of
# braces among those of blocks; the maximum share of ends of sentences there; and the characters looked at.
MIN_PAIRS = 0.6
MIN_INDENTED = 0.4
MIN_BRACES = 0.1
MAX_SENTENCES = 0.05
SENTENCE = re.compile(r"[^\W\d][.?!,:]\Z")
SAMPLE = 20_000


def nested(framed: str, ends: Sequence[int]) -> Iterator[Candidate]:
    """The keys and blocks with others below them, and without a title where those end.

    Only in a text with little else. `framed` is the text after a line end; `ends` begins with 0 and has the
    ends of its other headings.
    """
    beginning = framed[:SAMPLE]
    # An array of JSON has records, not settings.
    if beginning[1:2] == "[":
        return
    if len(PAIR.findall(beginning)) >= MIN_PAIRS * len(OTHER.findall(beginning)):
        yield from _documents(framed)
        found = _keys(framed)
    elif _has_blocks(beginning):
        found = _blocks(framed)
    else:
        return
    for one in found:
        start = _with_comment(framed, one.start, ends[bisect_right(ends, one.start) - 1])
        yield one._replace(start=start, end=start) if start < one.start else one


def _with_comment(framed: str, start: int, least: int) -> int:
    """The start of the comment directly above a line, else of the line."""
    above = framed.rfind("\n", least, start)
    while above >= 0 and COMMENT.match(framed, above + 1):
        start = above
        above = framed.rfind("\n", least, start)
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
        value = (
            VALUE.match(framed, pair.end()) if is_item and _has_lines(framed, pair.end(), column) else None
        )
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


def _has_blocks(beginning: str) -> bool:
    """Whether a text consists of blocks: of lines in braces, or else indented below a few words."""
    lines = LINE.findall(beginning)
    ends = len(END.findall(beginning))
    begins = sum(1 for _, line in lines if line.rstrip().endswith("{"))
    if begins and min(begins, ends) >= MIN_BRACES * len(lines):
        return True
    indented = sum(1 for indent, _ in lines if indent)
    sentences = sum(1 for _, line in lines if SENTENCE.search(line.rstrip()))
    return 0 < MIN_INDENTED * len(lines) <= indented and sentences <= MAX_SENTENCES * len(lines)


def _blocks(framed: str) -> Iterator[Candidate]:
    """The blocks of settings such as those of nginx, HAProxy, Terraform and routers, by their indentation."""
    open_ranks: list[int] = []
    lines = [(one.start(), len(one[1].expandtabs(8)), one[2].strip()) for one in LINE.finditer(framed)]
    for (start, indent, line), (after, inner, _) in zip(
        lines, [*lines[1:], (len(framed), 0, "")], strict=True
    ):
        outer = [rank for rank in open_ranks if rank < indent]
        begin = BEGIN.fullmatch(line) if inner > indent and len(line) <= MAX_TITLE else None
        if len(outer) < len(open_ranks):
            yield Candidate(start, start, "key", open_ranks[len(outer)], "")
        open_ranks = outer
        if begin:
            title = squeezed(begin[begin.lastgroup or 0])
            if " " not in title and (name := _name(framed, after, indent)):
                title = f"{title} {name}"
            yield Candidate(start, start, "key", indent, title)
            open_ranks = [*outer, indent]


def _name(framed: str, start: int, indent: int) -> str:
    """What a line such as "server_name example.org;" in the block from `start` names it."""
    end = re.compile(rf"\n[ \t]{{0,{indent}}}(?=[^\s#;])").search(framed, start)
    name = NAMED.search(framed, start, end.start() if end else len(framed))
    return name[1] if name else ""
