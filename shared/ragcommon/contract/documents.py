"""Documents and their passages as they are read, and what became of one that was written."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from ragcommon.text.places import Place

Metadata = dict[str, Any]
Status = Literal["added", "updated", "unchanged"]

DOCUMENT_URIS = "ragchat://document/"
"""What the URIs of the documents' resources begin with; the document's id follows."""


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
    written_by: str | None = None  # the program that stored it; None: it is not known
    machine: str = ""  # the other machine that has its file; "": this one, or it has no file
    digest: str = ""  # of its text: the first 16 hexadecimal digits of the SHA-256


class DocumentPage(Struct, frozen=True):
    documents: list[DocumentInfo]
    total: int  # how many match, on all pages
    next_cursor: str | UnsetType = UNSET  # there are more


class DocumentFolder(Struct, frozen=True):
    """A folder of the documents' URIs."""

    uri: str  # ends with a slash
    documents: int  # in it and in the folders below it


class FolderPage(Struct, frozen=True):
    """The folders of one place, without those that hold nothing but one folder."""

    folders: list[DocumentFolder]
    documents: int  # of the place itself, in none of its folders
    next_cursor: str | UnsetType = UNSET  # there are more folders


class DocumentPart(DocumentInfo, frozen=True, kw_only=True):
    """A document with some of its lines."""

    text: str
    start_line: int  # of the text, from 1; that line may have begun on the page before
    end_line: int  # inclusive
    places: list[Place] = []  # those of its lines
    next_cursor: str | UnsetType = UNSET  # there are more


class Injected(Struct, frozen=True):
    """The outcome of one `inject`."""

    document_id: str
    uri: str
    status: Status
    chunks: int


class Forgotten(Struct, frozen=True):
    """The outcome of one `forget`."""

    document_id: str
    uri: str
    chunks: int


class MapPoint(Struct, frozen=True):
    """A document on the map of the memory."""

    document_id: str
    uri: str
    title: str
    x: float  # in [-1, 1], like y: documents about the same are near each other
    y: float
    cluster: int  # its number in `clusters`, from 0


class MapCluster(Struct, frozen=True):
    words: list[str]  # that distinguish its documents from the others
    documents: int  # on the map
    x: float  # of its centre
    y: float


class MapPage(Struct, frozen=True):
    points: list[MapPoint]  # cluster by cluster, those nearest to its centre first
    clusters: list[MapCluster]  # of all pages, largest first
    next_cursor: str | UnsetType = UNSET  # there are more points
