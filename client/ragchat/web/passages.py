"""Passages as nodes: tables as tables, code and aligned columns in letters of one width. Pure.

The texts of the nodes, one after another, are the passage as it was written: what separates the cells of a
table is among them, but not seen.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from ragchat.offline.cards import ELLIPSIS
from ragchat.sanitize import sanitize
from ragchat.web.markup import Node
from ragcommon.text.columns import DELIMITERS, csv_header
from ragcommon.text.rules import FENCE, is_row, is_rule

Span = tuple[int, int]
# Where each cell of a line begins, and the spans of what is not seen.
Cut = Callable[[str], tuple[Sequence[int], Sequence[Span]]]

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_PIPE = re.compile(r"(?<!\\)\|")
# Columns, or the lines that some plain texts draw below and between them: "+----+----+", "====  ====".
_COLUMNS = re.compile(r"\S(?: {3,}| *\t\s*)\S|^\s*[-+=]{2,}[ +][-+= ]*$")


class Passage:
    """A passage. `styles` are the spans of what stands out in it, in order, by the name of its element."""

    def __init__(self, text: str, styles: Mapping[str, Sequence[Span]]) -> None:
        self._text = text
        self._styles = styles
        self._edges = sorted({edge for spans in styles.values() for span in spans for edge in span})
        self._lines = [found.span() for found in _LINE.finditer(text)] or [(0, 0)]

    def code(self) -> list[Node]:
        return [self._fixed(self._lines)]

    def csv(self) -> list[Node]:
        header = csv_header(self._text)
        names = self._text[slice(*header)] or self._text.partition("\n")[0]
        return [self._table(self._lines, _csv_cut(names), header)]

    def prose(self, *, tables: bool = True) -> list[Node]:
        """Without `tables`, their rows are shown as they were written."""
        nodes: list[Node] = []
        for kind, group in groupby(zip(self._kinds(), self._lines, strict=True), lambda one: one[0]):
            lines = [line for _, line in group]
            if kind == "text":
                nodes += self._styled(lines[0][0], lines[-1][1])
            elif kind == "table" and tables and len(lines) > 1:
                header = lines[0] if is_rule(self._text[slice(*lines[1])]) else (0, 0)
                nodes.append(self._table(lines, _row_cut, header))
            else:
                nodes.append(self._fixed(lines))
        return nodes

    def _kinds(self) -> list[str]:
        """Of each line: "table", "fixed" or "text"."""
        texts = [self._text[slice(*line)] for line in self._lines]
        kinds: list[str] = []
        fence = ""
        for text in texts:
            if (mark := FENCE.match(text)) and mark[1].startswith(fence):
                fence = "" if fence else mark[1]
                kinds.append("fixed")
            elif fence:
                kinds.append("fixed")
            else:
                is_in_table = is_row(text) or (text.startswith(ELLIPSIS) and kinds[-1:] == ["table"])
                kinds.append("table" if is_in_table else "text")
        for _, group in groupby(range(len(texts)), lambda number: bool(texts[number].strip())):
            paragraph = [*group]
            if sum(1 for at in paragraph if kinds[at] == "text" and _COLUMNS.search(texts[at])) > 1:
                kinds[paragraph[0] : paragraph[-1] + 1] = ["fixed"] * len(paragraph)
        return kinds

    def _fixed(self, lines: Sequence[Span]) -> Node:
        return ["span", {"class": "fixed"}, *self._styled(lines[0][0], lines[-1][1])]

    def _table(self, lines: Sequence[Span], cut: Cut, header: Span) -> Node:
        cuts = [cut(self._text[start:end]) for start, end in lines]
        columns = max(len(cells) for cells, _ in cuts)
        rows: list[Node] = []
        for (start, end), (cells, separators) in zip(lines, cuts, strict=True):
            is_header = header[0] <= start < header[1]
            name, attributes = ("th", {"scope": "col"}) if is_header else ("td", {})
            if len(cells) == 1:
                attributes["colspan"] = str(columns)
            unseen = [(start + first, start + last) for first, last in separators]
            spans = pairwise([*(start + cell for cell in cells), end])
            row = ([name, attributes, *self._styled(*span, unseen)] for span in spans)
            is_unseen = [(start, end)] == unseen
            rows.append(["tr", {"class": "separator", "aria-hidden": "true"} if is_unseen else {}, *row])
        return ["table", {"dir": "auto"}, *rows]

    def _styled(self, start: int, end: int, unseen: Sequence[Span] = ()) -> Iterator[Node]:
        """A part of the text; in `unseen` nothing stands out."""
        styled = self._edges[bisect_right(self._edges, start) : bisect_left(self._edges, end)]
        edges = {edge for span in unseen for edge in span if start < edge < end}
        for first, last in pairwise(sorted({start, end, *styled, *edges})):
            node: Node = sanitize(self._text[first:last])
            if _holds(unseen, first):
                node = ["span", {"class": "separator", "aria-hidden": "true"}, node]
            else:
                for name, spans in self._styles.items():
                    node = [name, {}, node] if _holds(spans, first) else node
            yield node


def _holds(spans: Sequence[Span], place: int) -> bool:
    before = bisect_right(spans, place, key=lambda span: span[0])
    return before > 0 and place < spans[before - 1][1]


def _row_cut(line: str) -> tuple[Sequence[int], Sequence[Span]]:
    """Cut the row of a table in Markdown."""
    if is_rule(line):
        return [0], [(0, len(line))]
    pipes = [found.span() for found in _PIPE.finditer(line)]
    return [0, *(pipe for pipe, _ in pipes[1:-1])], pipes if is_row(line) else []


def _csv_cut(header: str) -> Cut:
    """What cuts the lines of a CSV file with this row that names its columns, or its first one."""
    delimiter = max(DELIMITERS, key=header.count)

    def cut(line: str) -> tuple[Sequence[int], Sequence[Span]]:
        found = [] if line.startswith(ELLIPSIS) else re.finditer(re.escape(delimiter), line)
        places = [one.start() for one in found if line.count('"', 0, one.start()) % 2 == 0]
        return [0, *places], [(place, place + 1) for place in places]

    return cut
