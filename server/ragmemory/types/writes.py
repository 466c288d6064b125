"""Documents as they are written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct

from ragcommon.contract.history import Origin
from ragcommon.text.places import Place

# The embedding of one chunk, as it is stored: (d,) little-endian float16, unit length.
Embedding: TypeAlias = bytes


class Chunk(Struct, frozen=True):
    """A range of a document's text. The chunks of a document cover its text without gap or overlap."""

    start: int  # offset of the first character
    end: int  # offset after the last character
    start_line: int  # 1-based
    end_line: int  # 1-based, inclusive
    heading: str  # the path of headings above it, joined by " > "; "" if there are none
    context: str = ""  # the header of the table that it continues: a part of an earlier chunk, repeated
    surroundings: str = ""  # the neighbours of a turn in a conversation: searched and embedded, never quoted
    headings: list[Place] = []  # those inside it: first lines, and paths below `heading`; of code its symbols


class Document(Struct, frozen=True):
    """A validated document, ready to be cut into chunks and stored."""

    document_id: str
    uri: str
    title: str
    text: str
    digest: bytes  # SHA-256 of the text
    metadata: str  # JSON, keys sorted
    created: float | None = None  # metadata.created_at in seconds since 1970
    stamp: str = ""  # identifies the state of the file that it was read from; "": not read from a file
    machine: str = ""  # whose file that is: see `Engine.machine`; "": the stored one stays
    is_markdown: bool = True
    places: list[Place] = []  # in the order of their lines
    is_outdated: bool = False  # its chunks are those of an earlier release, which cut it otherwise


class StagedDocument(Struct, frozen=True):
    """A long document whose chunks are stored already, but hidden until it is committed."""

    number: int
    uri: str
    chunks: int = 0


class Edit(Struct, frozen=True):
    """What a write needs to be an edit of the version that its author saw."""

    version: int  # the write is refused unless this is the current version; 0: there is none
    outline: str  # of the new text: see `stores.outlines`
    # Awaited when all else is done, before the commit; if it fails, nothing is written.
    replace_file: Callable[[], Awaitable[None]] | None = None


class Write(Struct, frozen=True):
    """One document to write. Without chunks only its metadata can be written."""

    document: Document
    origin: Origin
    chunks: list[Chunk] | None = None
    embeddings: list[Embedding] = []
    inputs: list[bytes] = []  # digests of what was embedded, to find the embeddings again; []: not stored
    staged: StagedDocument | None = None  # instead of chunks and embeddings
    # Called with the characters of a long document that are stored, and all.
    on_progress: Callable[[float, float | None, str | None], Awaitable[None]] | None = None
    known: dict[bytes, Embedding] = {}  # embeddings that need not be computed, by digests as in `inputs`
    undoes: int | None = None  # the journal entry that this write undoes
    edit: Edit | None = None
    added_at: str = ""  # ISO 8601, UTC; "": now, unless the document exists
    updated_at: str = ""  # ISO 8601, UTC; "": now
    earlier: list[Write] = []  # versions for the journal, the oldest first, unless the document exists
