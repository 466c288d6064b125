"""One document as a tree of blocks with ids and labels."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ragcommon.contract.documents import Metadata
from ragcommon.errors import DECODE_ERRORS
from ragcommon.text.rules import searchable
from ragmemory.blocks.labels import find_block, labels
from ragmemory.blocks.outline import Outline, OutlineEntry, outline
from ragmemory.blocks.tree import Format, Tree
from ragmemory.errors import BlockNotFound
from ragmemory.ingest.documents import is_csv, is_markdown
from ragmemory.types.blocks import BlockKind, ShownBlock
from ragmemory.types.documents import DocumentText

_WORD = re.compile(r"[^\W_]+")


class BlockView(NamedTuple):
    """A document and its blocks. The lists are in block order."""

    stored: DocumentText
    tree: Tree
    outline: list[OutlineEntry]
    labels: list[str]
    encoded_outline: str  # as stored

    def find(self, name: str) -> int:
        """The index of a block by its id, label or number. Raises BlockNotFound."""
        index = find_block(name, [entry.id for entry in self.outline], self.labels)
        if index is None:
            raise BlockNotFound(self.stored.info.uri, name)
        return index

    def indexes_in(self, start_line: int, end_line: int, kind: BlockKind | None) -> list[int]:
        """The indexes of the blocks that overlap these lines: of one kind, or all but headings and lists."""
        return [
            index
            for index, node in enumerate(self.tree.nodes)
            if (node.kind == kind if kind else node.kind not in ("heading", "list"))
            and (lines := self.tree.own_lines(index))[0] <= end_line
            and lines[1] >= start_line
        ]

    def shown(self, index: int, *, whole: bool = False) -> ShownBlock:
        """A block; with `whole`, its text includes its descendants."""
        node, info = self.tree.nodes[index], self.stored.info
        start, end = self.tree.span(index, section=True)
        first, last = self.tree.lines(start, end)
        return ShownBlock(
            document_id=info.document_id,
            uri=info.uri,
            title=info.title,
            version=self.stored.version,
            block_id=self.outline[index].id,
            number=index + 1,
            label=self.labels[index],
            kind=node.kind,
            level=node.level,
            heading=node.heading,
            start_line=first,
            end_line=last,
            text=self.tree.text[start:end] if whole else self.tree.own(index),
        )


def view_of(stored: DocumentText) -> BlockView:
    tree = Tree(stored.text, format_of(stored.info.uri, stored.info.metadata))
    entries = outline(tree, decoded(stored.outline))
    return BlockView(stored, tree, entries, labels(tree), encoded(entries))


def format_of(uri: str, metadata: Metadata) -> Format:
    if is_markdown(uri, metadata.get("media_type")):
        return "markdown"
    return "csv" if is_csv(uri) else "plain"


def matching_blocks(view: BlockView, phrases: Sequence[str]) -> list[int]:
    """The indexes of the blocks that contain all phrases."""
    indexes = []
    title = fulltext_words(view.stored.info.title)
    for index, node in enumerate(view.tree.nodes):
        text = fulltext_words(view.tree.own(index)) if node.kind != "list" else ""
        above = "" if node.level else title + fulltext_words(node.heading)
        # A match in the headings alone would select every block below them.
        if any(phrase in text for phrase in phrases) and all(phrase in text + above for phrase in phrases):
            indexes.append(index)
    return indexes


def fulltext_words(text: str) -> str:
    """The words of a text as FTS5 sees them, case and accents folded, with spaces around them."""
    plain = unicodedata.normalize("NFKD", searchable(text).casefold())
    words = _WORD.findall("".join(char for char in plain if not unicodedata.combining(char)))
    return f" {' '.join(words)} "


def encoded(entries: Outline) -> str:
    return msgspec.json.encode(entries).decode()


def decoded(stored: str) -> list[OutlineEntry]:
    """A stored outline; empty if it is damaged, since ids can be derived again."""
    try:
        return msgspec.json.decode(stored, type=list[OutlineEntry]) if stored else []
    except DECODE_ERRORS:
        return []
