"""What the memory server's tools answer, as typed objects: its own shapes, seen from this side of the wire.
Fields that it may add later are ignored.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from ragchat.types import Hit


class QueryResult(Struct, frozen=True):
    """`notice` says what was not as usual ("": nothing), such as a search by words alone."""

    hits: list[Hit]
    notice: str = ""


class Injected(Struct, frozen=True):
    document_id: str
    uri: str
    status: Literal["added", "updated", "unchanged"]
    chunks: int


class DocumentInfo(Struct, frozen=True):
    """Times are ISO 8601, UTC."""

    document_id: str
    uri: str
    title: str
    chunks: int
    characters: int
    added_at: str
    updated_at: str
    metadata: dict[str, Any] = field(default_factory=dict)


class Documents(Struct, frozen=True):
    """A page of the list; `total` counts all that match."""

    documents: list[DocumentInfo]
    total: int


class DocumentText(DocumentInfo, frozen=True, kw_only=True):
    text: str


class Forgotten(Struct, frozen=True):
    document_id: str
    uri: str
    chunks: int


class Origin(Struct, frozen=True):
    client: str = ""
    session: str = ""


class Entry(Struct, frozen=True):
    """One write in the journal."""

    seq: int
    at: str
    action: str
    document_id: str
    uri: str
    origin: Origin = field(default_factory=Origin)
    undone: bool = False


class Journal(Struct, frozen=True):
    entries: list[Entry]


class Undone(Struct, frozen=True):
    entry: Entry


class Reembedded(Struct, frozen=True):
    chunks: int
    embedder: str


class Stats(Struct, frozen=True):
    """`bytes` are those on disk; `embedder` is "" before the first document."""

    path: str
    documents: int
    chunks: int
    characters: int
    bytes: int
    embedder: str
    dimensions: int


class Verified(Struct, frozen=True):
    """Each problem is a sentence, and what to do about it."""

    ok: bool
    problems: list[str]
