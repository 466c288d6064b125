"""The passage that memory finds. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from ragcommon.text.places import Place, within


def format_uri(uri: str, metadata: Mapping[str, Any]) -> str:
    """The URI whose suffix names the format of a text; "" for a document that was converted to Markdown."""
    return "" if "media_type" in metadata else uri


class Hit(Struct, frozen=True):
    """A chunk that memory found. `score` is in [0, 1] and comparable between queries."""

    rank: int  # from 1
    score: float
    chunk_id: int
    document_id: str
    uri: str
    title: str
    heading: str
    start_line: int  # 1-based
    end_line: int  # inclusive
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)
    context: str = ""  # the header of the table that `text` continues; "" if it needs none
    location: str = ""  # such as "thesis.pdf p. 12" or "notes.md:3–5"
    places: list[Place] = field(default_factory=list)  # those of its lines
    surroundings: str = ""  # the neighbours of a turn in a conversation, by which it was found as well
    written_by: str | None = None  # the program that stored the text, as the journal names it
    headings: list[Place] = field(default_factory=list)  # those inside it: lines, and paths below `heading`
    rerank_score: float | UnsetType = UNSET  # in [0, 1]; by it hits are ordered, if there is a reranker

    def heading_at(self, line: int) -> str:
        """The path of headings above a line of its document."""
        return " > ".join(
            filter(None, [self.heading, *(name for _, name in within(self.headings, line, line))])
        )

    @property
    def format_uri(self) -> str:
        """The URI whose suffix names the format of the text: see `format_uri`."""
        return format_uri(self.uri, self.metadata)

    @property
    def full_text(self) -> str:
        """The text with what it needs to be understood."""
        return self.context + self.text
