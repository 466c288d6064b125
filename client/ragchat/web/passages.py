"""Passages as nodes: tables as tables, code and aligned columns in letters of one width. Pure.

The texts of the nodes, one after another, are the passage as it was written: what separates the cells of a
table is among them, but not seen.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from ragchat.offline.cards import ELLIPSIS
from ragchat.sanitize import sanitize
from ragchat.web.markup import Node
from ragcommon.text.columns import csv_delimiter
from ragcommon.text.places import DIVIDER
from ragcommon.text.rules import FENCE, LINE, is_row, is_rule

Span = tuple[int, int]

# The mark of lines that are left out.
_LEFT_OUT = re.compile(rf"{ELLIPSIS}(?: line \d+| lines \d+–\d+| [\d,]+ more)?\s*")
# Columns, or the lines that some plain texts draw below and between them: "+----+----+", "====  ====".
_COLUMNS = re.compile(r"\S(?: {3,}| *\t\s*)\S|^\s*[-+=]{2}[-=]*[ +][-+= ]*$")


class Row(NamedTuple):
    """A row of a table: where it begins and ends, where its cells begin, and the spans that are hidden."""

    start: int
    end: int
    cells: Sequence[int]
    unseen: Sequence[Span]


class Passage:
    """A passage. `styles` are the spans of what stands out in it, in order, by the name of its element."""

    def __init__(self, text: str, styles: Mapping[str, Sequence[Span]]) -> None:
        self._text = text
        self._styles = styles
        self._edges = sorted({edge for spans in styles.values() for span in spans for edge in span})
        self._lines = [found.span() for found in LINE.finditer(text)] or [(0, 0)]

    def code(self) -> list[Node]:
        return [self._fixed(self._lines)]

    def csv(self, names: str = "") -> list[Node]:
        """`names` is the row that names the columns, "" if the file has none: see `Hit.columns`."""
        names = names.strip("\r\n")
        found = re.search(rf"^{re.escape(names)}\r?$", self._text, re.MULTILINE) if names else None
        delimiter = csv_delimiter(self._text) or ","
        return [self._table([*self._records(delimiter)], found.span() if found else (0, 0))]

    def prose(self, *, tables: bool = True) -> list[Node]:
        """Without `tables`, their rows are shown as they were written."""
        nodes: list[Node] = []
        for kind, group in groupby(zip(self._kinds(), self._lines, strict=True), lambda one: one[0]):
            lines = [line for _, line in group]
            if kind == "text":
                nodes += self._styled(lines[0][0], lines[-1][1])
            elif kind == "table" and tables and len(lines) > 1:
                header = lines[0] if is_rule(self._text[slice(*lines[1])]) else (0, 0)
                nodes.append(self._table([_row(self._text, *line) for line in lines], header))
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
                is_in_table = is_row(text) or (_LEFT_OUT.fullmatch(text) and kinds[-1:] == ["table"])
                kinds.append("table" if is_in_table else "text")
        for _, group in groupby(range(len(texts)), lambda number: bool(texts[number].strip())):
            paragraph = [*group]
            if sum(1 for at in paragraph if kinds[at] == "text" and _COLUMNS.search(texts[at])) > 1:
                kinds[paragraph[0] : paragraph[-1] + 1] = ["fixed"] * len(paragraph)
        return kinds

    def _fixed(self, lines: Sequence[Span]) -> Node:
        return ["span", {"class": "fixed"}, *self._styled(lines[0][0], lines[-1][1])]

    def _records(self, delimiter: str) -> Iterator[Row]:
        """The rows of a CSV file. A quotation may have line breaks, but ends before what is left out."""
        # A quotation mark inside a cell, or without another one, is a character as others.
        cell = re.compile(rf' *"(?:[^"]|"")*+"[^{re.escape(delimiter)}\n]*|[^{re.escape(delimiter)}\n]*')
        is_left_out = (_LEFT_OUT.fullmatch(self._text, *line) is not None for line in self._lines)
        for is_mark, group in groupby(zip(is_left_out, self._lines, strict=True), lambda one: one[0]):
            lines = [line for _, line in group]
            if is_mark:
                yield from (Row(*line, [line[0]], []) for line in lines)
                continue
            begin, stop = lines[0][0], lines[-1][1]
            delimiters: list[int] = []
            at = begin
            while found := cell.match(self._text, at, stop):
                at = min(found.end() + 1, stop)
                if self._text[found.end() : at] == delimiter:
                    delimiters.append(found.end())
                    continue
                yield Row(begin, at, [begin, *delimiters], [(one, one + 1) for one in delimiters])
                begin, delimiters = at, []
                if begin == stop:
                    break

    def _table(self, rows: Sequence[Row], header: Span) -> Node:
        columns = max(len(row.cells) for row in rows)
        nodes: list[Node] = []
        for start, end, cells, unseen in rows:
            is_header = header[0] <= start < header[1]
            name, attributes = ("th", {"scope": "col"}) if is_header else ("td", {})
            if len(cells) == 1:
                attributes["colspan"] = str(columns)
            row: list[Node] = []
            for first, last in pairwise([*cells, end]):
                own = unseen[bisect_left(unseen, (first, first)) : bisect_left(unseen, (last, last))]
                row.append([name, attributes, *self._styled(first, last, own)])
            is_unseen = len(cells) == 1 and unseen == [(start, end)]
            nodes.append(["tr", {"class": "separator", "aria-hidden": "true"} if is_unseen else {}, *row])
        return ["table", {"dir": "auto"}, *nodes]

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


def _row(text: str, start: int, end: int) -> Row:
    """A row of a table in Markdown."""
    line = text[start:end]
    if is_rule(line):
        return Row(start, end, [start], [(start, end)])
    pipes = [(start + found.start(), start + found.end()) for found in DIVIDER.finditer(line)]
    return Row(start, end, [start, *(pipe for pipe, _ in pipes[1:-1])], pipes if is_row(line) else [])
