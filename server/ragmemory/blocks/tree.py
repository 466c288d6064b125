"""The tree of blocks of a text. Pure and lossless: the blocks are ranges that concatenate to the text.

The blocks of `ingest.blocks` are nested below headings and in lists, by level and indentation, and cut where
a quote or an indented code fence begins in the middle. The rules are CommonMark's, with tables, but coarser:
a quote is one block, and so is the first paragraph of an item with its marker.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ragmemory.ingest.blocks import (
    Block,
    closes,
    csv_blocks,
    is_table_rule,
    markdown_blocks,
    paragraphs,
)
from ragmemory.types.blocks import BlockKind

Format = Literal["markdown", "csv", "plain"]

_READERS: dict[Format, Callable[[str], Iterator[Block]]] = {
    "markdown": markdown_blocks,
    "csv": csv_blocks,
    "plain": paragraphs,
}
# Columns of indentation that make code; also the tab width.
_CODE_INDENT = 4
_MARKER = re.compile(r"[ \t]*(?:([-*+])|(\d{1,9})([.)]))(?=\s|\Z)")
_THEMATIC_BREAK = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$")
# A line that interrupts a paragraph within a block: a quote, or a fence indented as in a list.
_INTERRUPTION = re.compile(r"^[ \t]*(?:>|(`{3,}|~{3,}))", re.MULTILINE)


class Node(Struct, gc=False):
    """A block of a tree.

    Its text begins at `start`. Its own part, with the blank lines after it, ends at `end`: the lines of a
    heading, the first paragraph of an item, nothing of a list. Its descendants end at `stop`.
    """

    kind: BlockKind
    level: int  # of a heading, from 1; 0: not a heading
    depth: int  # from 1
    parent: int  # index of the parent; -1: none
    start: int
    end: int
    heading: str  # path of headings, joined by " > ", including a heading itself
    stop: int = 0


class Marker(NamedTuple):
    """The marker of a list item."""

    kind: str  # "-", "*", "+", ".", ")": the same for all items of a list
    number: str  # "" for a bullet
    content: int  # column of the item's text
    is_empty: bool  # no text in its line


class _OpenList(NamedTuple):
    """A list whose last item may continue."""

    list_index: int
    item: int  # index of its last item
    marker: Marker  # of its last item


class Tree:
    """The blocks of a text in document order: parents before children."""

    def __init__(self, text: str, format: Format) -> None:
        self.text = text
        self.format: Format = format
        builder = _Builder(text, format)
        for block in _READERS[format](text):
            builder.add(block)
        self.nodes = builder.finished()

    def below(self, index: int) -> range:
        """The indexes of a block and its descendants."""
        depth, end = self.nodes[index].depth, index + 1
        while end < len(self.nodes) and self.nodes[end].depth > depth:
            end += 1
        return range(index, end)

    def span(self, index: int, *, section: bool = False) -> tuple[int, int]:
        """The range of a block and its descendants, without the blank lines after it.

        Descendants of a heading are included only with `section`.
        """
        node = self.nodes[index]
        end = node.end if node.level and not section else node.stop
        return node.start, node.start + len(self.text[node.start : end].rstrip())

    def own(self, index: int) -> str:
        """The text of a block without its descendants, stripped."""
        node = self.nodes[index]
        return self.text[node.start : node.end].strip()

    def own_lines(self, index: int) -> tuple[int, int]:
        """The first and last line, from 1, of a block without its descendants."""
        node = self.nodes[index]
        return self.lines(node.start, node.start + len(self.text[node.start : node.end].rstrip()))

    def lines(self, start: int, end: int) -> tuple[int, int]:
        """The first and the last line, from 1, of a range."""
        last = max(start, end - 1)
        return bisect_right(self._line_starts, start), bisect_right(self._line_starts, last)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]


class _Builder:
    """Adds one block after the other to the tree."""

    def __init__(self, text: str, format: Format) -> None:
        self._text = text
        self._format = format
        self._nodes: list[Node] = []
        self._headings: list[int] = []
        self._lists: list[_OpenList] = []
        # An open indented code fence, and the column of its surroundings.
        self._fence, self._fence_base = "", 0

    def finished(self) -> list[Node]:
        """The tree."""
        stops: dict[int, int] = {}
        for index in reversed(range(len(self._nodes))):
            node = self._nodes[index]
            node.stop = max(node.end, stops.get(index, 0))
            stops[node.parent] = max(node.stop, stops.get(node.parent, 0))
        return self._nodes

    def add(self, block: Block) -> None:
        """Add a block of the text."""
        if block.level:
            self._add_heading(block)
        elif self._format == "markdown":
            for part in self._parts(block):
                self._add_part(part)
        elif not self._is_blank(block):
            self._append(block.kind, block)

    def _is_blank(self, block: Block) -> bool:
        """Whether a block has only blank lines, which then belong to the previous block."""
        is_blank = self._text[block.start : block.end].isspace()
        if is_blank and self._nodes:
            self._nodes[-1].end = block.end
        return is_blank

    def _add_heading(self, block: Block) -> None:
        self._lists, self._fence = [], ""
        while self._headings and self._nodes[self._headings[-1]].level >= block.level:
            self._headings.pop()
        self._headings.append(self._append("heading", block))

    def _parts(self, block: Block) -> Iterator[Block]:
        """Split a block where a quote or an indented fence begins, and where that fence is closed."""
        if self._fence and self._columns(block.start) < self._fence_base:
            self._fence = ""
        if self._fence:
            block = replace(block, is_continued=True)
        elif block.kind not in ("paragraph", "item"):
            yield block
            return
        for found in _INTERRUPTION.finditer(self._text, block.start, block.end):
            at, fence = found.start(), found[1]
            if self._fence:
                if closes(self._line(at), self._fence):
                    self._fence = ""
                    end = min(at + len(self._line(at)) + 1, block.end)
                    yield replace(block, end=end)
                    block = replace(block, start=end, kind="paragraph", is_continued=False)
                continue
            base = self._base(self._columns(at))
            if self._columns(at) - base >= _CODE_INDENT or (block.is_continued and at == block.start):
                continue
            if at > block.start:
                yield replace(block, end=at)
            block = replace(block, start=at, kind="code" if fence else "quote", is_continued=False)
            if not fence:
                break
            self._fence, self._fence_base = fence, base
        if block.start < block.end:
            yield block

    def _add_part(self, block: Block) -> None:
        if self._is_blank(block):
            return
        if self._nodes and (block.is_continued or self._continues_text(block)):
            self._nodes[-1].end = block.end
            return
        indent, marker = self._columns(block.start), self._marker(block)
        sibling = self._leave_lists(indent, marker)
        base = self._lists[-1].marker.content if self._lists else 0
        if marker and (sibling or indent - base < _CODE_INDENT):
            self._add_item(block, marker, sibling)
        elif indent - base >= _CODE_INDENT:
            self._add_indented_code(block)
        else:
            self._append(self._kind(block), block)

    def _add_item(self, block: Block, marker: Marker, sibling: _OpenList | None) -> None:
        index = sibling.list_index if sibling else self._append("list", replace(block, end=block.start))
        item = self._append("item", block, index)
        self._lists.append(_OpenList(index, item, marker))

    def _add_indented_code(self, block: Block) -> None:
        """Add indented code, which continues across blank lines."""
        last = self._nodes[-1] if self._nodes else None
        goes_on = last and last.kind == "code" and last.parent == self._parent()
        if last and goes_on and not self._line(last.start).lstrip().startswith(("```", "~~~")):
            last.end = block.end
        else:
            self._append("code", block)

    def _append(self, kind: BlockKind, block: Block, parent: int | None = None) -> int:
        if parent is None:
            parent = self._parent(block.level)
        depth = self._nodes[parent].depth + 1 if parent >= 0 else 1
        self._nodes.append(Node(kind, block.level, depth, parent, block.start, block.end, block.heading))
        return len(self._nodes) - 1

    def _parent(self, level: int = 0) -> int:
        if self._lists and not level:
            return self._lists[-1].item
        return self._headings[-1] if self._headings else -1

    def _leave_lists(self, indent: int, marker: Marker | None) -> _OpenList | None:
        """Close the lists that this indentation leaves; return the one that the block continues, if any."""
        left: _OpenList | None = None
        while self._lists and indent < self._lists[-1].marker.content:
            left = self._lists.pop()
        base = self._lists[-1].marker.content if self._lists else 0
        if left and marker and left.marker.kind == marker.kind and indent - base < _CODE_INDENT:
            return left
        return None

    def _continues_text(self, block: Block) -> bool:
        """Whether a block continues a paragraph, because it may not interrupt one."""
        last, line_before = self._nodes[-1], self._text.rfind("\n", 0, block.start - 1) + 1
        if last.kind not in ("paragraph", "item") or self._text[line_before : block.start].isspace():
            return False
        indent, marker = self._columns(block.start), self._marker(block)
        if any(indent < one.marker.content for one in self._lists):
            return marker is None and block.kind == "paragraph"
        if indent - self._base(indent) >= _CODE_INDENT:
            return True
        return marker is not None and (marker.number not in ("", "1") or marker.is_empty)

    def _base(self, indent: int) -> int:
        """The text column of the innermost item that contains this indentation."""
        return max((one.marker.content for one in self._lists if one.marker.content <= indent), default=0)

    def _kind(self, block: Block) -> BlockKind:
        """The kind of a block other than a heading, item or indented code."""
        if block.kind not in ("paragraph", "table"):
            return "paragraph" if block.kind == "item" else block.kind
        first = self._line(block.start)
        rule_at = block.start + len(first) + 1
        rule = self._line(rule_at) if rule_at < block.end else ""
        is_table = "|" in first and is_table_rule(rule) and _cells(first) == _cells(rule)
        return "table" if is_table else "paragraph"

    def _marker(self, block: Block) -> Marker | None:
        if block.kind != "item" or _THEMATIC_BREAK.match(self._line(block.start)):
            return None
        return marker_of(self._line(block.start))

    def _line(self, start: int) -> str:
        """The line that begins at `start`, without its end."""
        end = self._text.find("\n", start)
        return self._text[start:] if end < 0 else self._text[start:end]

    def _columns(self, start: int) -> int:
        return indent_of(self._line(start))


def marker_of(line: str) -> Marker | None:
    """The marker of a line that begins an item."""
    match = _MARKER.match(line)
    if match is None:
        return None
    end = len(match[0].expandtabs(_CODE_INDENT))
    rest = line[match.end() :]
    spaces = len(line.expandtabs(_CODE_INDENT)) - len(rest.lstrip().expandtabs(_CODE_INDENT)) - end
    is_empty = not rest.strip()
    content = end + (spaces if 1 <= spaces <= _CODE_INDENT and not is_empty else 1)
    return Marker(match[1] or match[3], match[2] or "", content, is_empty)


def indent_of(line: str) -> int:
    """The column where the text of a line begins."""
    return len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(_CODE_INDENT))


def _cells(row: str) -> int:
    return len(re.findall(r"(?<!\\)\|", row.strip().strip("|")))
