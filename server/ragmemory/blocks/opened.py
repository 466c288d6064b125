"""One document, opened as a tree of blocks: their places, ids and labels, and what they hold."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ragcommon.contract.documents import Metadata
from ragcommon.text.rules import searchable
from ragmemory.blocks.labels import find, labels
from ragmemory.blocks.outline import Entry, outline
from ragmemory.blocks.tree import Format, Kind, Tree
from ragmemory.errors import BlockNotFound
from ragmemory.ingest.documents import is_csv, is_markdown
from ragmemory.types.blocks import ShownBlock
from ragmemory.types.documents import DocumentText

_WORD = re.compile(r"[^\W_]+")


class Opened(NamedTuple):
    """A document and its blocks: the lists are in their order."""

    stored: DocumentText
    tree: Tree
    outline: list[Entry]
    labels: list[str]
    new_outline: str  # as it is stored

    def place(self, name: str) -> int:
        """The place of a block by its id, label or number. Raises BlockNotFound."""
        place = find(name, [entry.id for entry in self.outline], self.labels)
        if place is None:
            raise BlockNotFound(self.stored.info.uri, name)
        return place

    def places_in(self, start_line: int, end_line: int, kind: Kind | None) -> list[int]:
        """The places of the blocks with some of these lines: of one kind, or no headings and lists."""
        return [
            place
            for place, node in enumerate(self.tree.nodes)
            if (node.kind == kind if kind else node.kind not in ("heading", "list"))
            and (lines := self.tree.own_lines(place))[0] <= end_line
            and lines[1] >= start_line
        ]

    def shown(self, place: int, *, whole: bool = False) -> ShownBlock:
        """A block; with `whole`, its text includes the blocks below it."""
        node, info = self.tree.nodes[place], self.stored.info
        start, end = self.tree.span(place, section=True)
        first, last = self.tree.lines(start, end)
        return ShownBlock(
            document_id=info.document_id,
            uri=info.uri,
            title=info.title,
            version=self.stored.version,
            block_id=self.outline[place].id,
            number=place + 1,
            label=self.labels[place],
            kind=node.kind,
            level=node.level,
            heading=node.heading,
            start_line=first,
            end_line=last,
            text=self.tree.text[start:end] if whole else self.tree.own(place),
        )


def opened_from(stored: DocumentText) -> Opened:
    tree = Tree(stored.text, format_of(stored.info.uri, stored.info.metadata))
    entries = outline(tree, decoded(stored.outline))
    return Opened(stored, tree, entries, labels(tree), encoded(entries))


def format_of(uri: str, metadata: Metadata) -> Format:
    if is_markdown(uri, metadata.get("media_type")):
        return "markdown"
    return "csv" if is_csv(uri) else "plain"


def holding(opened: Opened, phrases: Sequence[str]) -> list[int]:
    """The places of the blocks that hold all phrases."""
    places = []
    title = folded(opened.stored.info.title)
    for place, node in enumerate(opened.tree.nodes):
        text = folded(opened.tree.own(place)) if node.kind != "list" else ""
        above = "" if node.level else title + folded(node.heading)
        # A match in the headings alone would name every block below them.
        if any(phrase in text for phrase in phrases) and all(phrase in text + above for phrase in phrases):
            places.append(place)
    return places


def folded(text: str) -> str:
    """The words of a text as FTS5 sees them, without case and accents, with a space around each."""
    plain = unicodedata.normalize("NFKD", searchable(text).casefold())
    words = _WORD.findall("".join(char for char in plain if not unicodedata.combining(char)))
    return f" {' '.join(words)} "


def encoded(entries: Sequence[Entry]) -> str:
    return msgspec.json.encode(entries).decode()


def decoded(stored: str) -> list[Entry]:
    """A stored outline; a damaged one is as none, since ids can be derived again."""
    try:
        return msgspec.json.decode(stored, type=list[Entry]) if stored else []
    except msgspec.DecodeError:
        return []
