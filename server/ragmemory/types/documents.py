"""Documents and their passages, as they are read."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from ragcommon.text.places import Place

Metadata = dict[str, Any]


class Passage(Struct, frozen=True, kw_only=True):
    """One stored chunk, and its place in its document."""

    chunk_id: int
    document_id: str
    uri: str
    title: str
    heading: str
    start_line: int
    end_line: int
    text: str
    context: str = ""  # the header of the table that `text` continues; "" if it needs none


class DocumentInfo(Struct, frozen=True):
    document_id: str
    uri: str
    title: str
    chunks: int
    characters: int
    added_at: str  # ISO 8601, UTC
    updated_at: str
    metadata: Metadata = field(default_factory=dict)
    written_by: str | None = None  # as in `Hit`


DocumentOrder = Literal["uri", "title", "added_at", "updated_at", "characters"]


class DocumentPart(DocumentInfo, frozen=True, kw_only=True):
    """A document with some of its lines."""

    text: str
    start_line: int  # of the text, from 1; that line may have begun on the page before
    end_line: int  # inclusive
    places: list[Place] = []  # those of its lines
    next_cursor: str | UnsetType = UNSET  # there are more


class DocumentText(Struct, frozen=True):
    """A document as its blocks are read."""

    info: DocumentInfo
    text: str
    digest: bytes  # SHA-256 of the text
    version: int  # the number of the current version; 0: the journal has no write of it
    stamp: str
    places: list[Place]
    outline: str  # of this text or an earlier one: see `stores.outlines`; "": none is stored
