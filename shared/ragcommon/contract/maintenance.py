"""Outcomes of the care of the whole memory, and documents on their way between memories."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ragcommon.contract.documents import Metadata
from ragcommon.text.places import Place


class PortableVersion(Struct, frozen=True):
    """An earlier version of a document as it is exported."""

    text: str
    metadata: Metadata = {}
    added_at: str = ""  # ISO 8601, UTC: when the document was added; "": now
    places: list[Place] = []  # in the order of their lines


class PortableDocument(Struct, frozen=True):
    """A document as it is exported. Its uri and title follow from the text and the metadata."""

    text: str
    metadata: Metadata = {}
    added_at: str = ""  # ISO 8601, UTC; "": now
    updated_at: str = ""  # ISO 8601, UTC; "": now
    places: list[Place] = []  # in the order of their lines
    # Embeddings in base64 by the digests, in hexadecimal, of what was embedded: see `preparation.digest_of`.
    vectors: dict[str, str] | UnsetType = UNSET
    versions: list[PortableVersion] | UnsetType = UNSET  # the earlier ones, the oldest first
    # That has its file, if it was uploaded; "": an import keeps what is known. Never exported.
    machine: Annotated[str, Meta(max_length=100, pattern="^[a-z0-9-]*$")] = ""


class ExportPage(Struct, frozen=True):
    documents: list[PortableDocument]
    total: int  # documents in memory
    next_cursor: str | UnsetType = UNSET  # there are more
    embedder: str = ""  # of the vectors
    dimensions: int = 0


class ImportOutcome(Struct, frozen=True):
    """What became of one imported document."""

    status: Literal["added", "updated", "unchanged", "failed"]
    uri: str = ""  # of the stored document
    error: str = ""  # why it was not stored: a sentence


class Imported(Struct, frozen=True):
    outcomes: list[ImportOutcome]  # in the order of the documents


class Backup(Struct, frozen=True):
    """The outcome of one `backup`."""

    path: str
    bytes: int
    documents: int


class Reembedded(Struct, frozen=True):
    """The outcome of one `reembed`."""

    chunks: int
    embedder: str
    computed: int = 0  # embeddings; the others were kept from an earlier reembedding
    kept_embedder: str = ""  # of the old embeddings
    kept_bytes: int = 0  # of these


class EmbedderModel(Struct, frozen=True):
    """A model that embeds on the machine of the memory."""

    name: str
    kind: Literal["local", "fastembed"]
    bytes: int  # of the download; 0: none is needed
    languages: str
    licence: str
    is_downloaded: bool
    measured: str = ""  # what this project has measured, as a sentence; "": nothing


class EmbedderModels(Struct, frozen=True):
    models: list[EmbedderModel]
    install: str = ""  # the command that installs what the models of "fastembed" need; "": it is there


class Prepared(Struct, frozen=True):
    """The configured embedder has embedded a word."""

    embedder: str
    dimensions: int


class Verified(Struct, frozen=True):
    """The outcome of one `verify`. Each problem is a sentence that ends with the remedy."""

    ok: bool
    problems: list[str]
    more_problems: int = 0  # that are left out of `problems`


class Repaired(Struct, frozen=True):
    """The outcome of one `repair`. Problems are sentences; `problems` are those that are left."""

    ok: bool
    problems: list[str]
    repaired: list[str] = []
    backup: str = ""  # the copy that was made before; "": nothing had to be repaired, or it is no file
    more_problems: int = 0  # that are left out of `problems`
    more_repaired: int = 0


class Stats(Struct, frozen=True):
    path: str
    documents: int
    chunks: int
    characters: int
    bytes: int  # of the file, with its write-ahead log
    embedder: str
    dimensions: int
    next_embedder: str = ""  # of a reembedding that is not completed
    kept_embedder: str = ""  # of the embeddings before the last reembedding, if they are kept
    kept_bytes: int = 0  # of these embeddings
