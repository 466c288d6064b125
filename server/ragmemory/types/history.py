"""The journal, versions of documents, undo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from ragcommon.text.places import Place
from ragmemory.types.documents import Metadata
from ragmemory.types.writes import Origin, Status


class Entry(Struct, frozen=True):
    """One entry of the journal."""

    seq: int
    at: str  # ISO 8601, UTC
    action: Literal["added", "updated", "removed", "restored"]
    document_id: str
    uri: str
    origin: Origin
    undone: bool = False


class Previous(Struct, frozen=True):
    """A document as it was before a write: what undo restores."""

    text: str
    metadata: Metadata
    added_at: str  # ISO 8601, UTC
    digest: bytes | None = None  # SHA-256 of the text, if it is known
    places: list[Place] = []


class Version(Struct, frozen=True):
    """A version of a document."""

    number: int  # of the write that made it, in the journal
    at: str  # ISO 8601, UTC
    action: Literal["added", "updated", "removed"]
    origin: Origin
    characters: int | None  # of its text, 0 for a removal; None: no longer kept
    current: bool = False


class Versions(Struct, frozen=True):
    """The versions of a document, the current one first."""

    document_id: str
    uri: str
    versions: list[Version]


class VersionText(Struct, frozen=True):
    """A version of a document with its text, "" for a removal."""

    uri: str
    version: Version
    text: str
    metadata: Metadata
    added_at: str = ""  # ISO 8601, UTC, when the document was added
    places: list[Place] = []  # of an earlier version


class Difference(Struct, frozen=True):
    """What changed from one version of a document to another."""

    uri: str
    before: Version | None  # None: there is no earlier version
    after: Version
    diff: str  # unified, of the text and then of the metadata; "" if they are equal


class Restored(Struct, frozen=True):
    """The outcome of one `restore`."""

    document_id: str
    uri: str
    version: int  # the version that is the current one again
    status: Status
    chunks: int
    next_sync: Literal["", "updated", "removed"] = ""  # what the next sync of the sources does to it again


class Selection(Struct, frozen=True):
    """Which writes an undo undoes: the last one with its group; or some by number; or by client and time."""

    numbers: Sequence[int] = ()  # in the journal
    origin: str = ""  # the name of a client, a session, or a host
    since: str = ""  # ISO 8601, or a time ago such as 10m, 2h or 3d


class Undone(Struct, frozen=True):
    """The outcome of one `undo`."""

    entry: Entry  # the newest of those undone
    writes: dict[str, int]  # how many were undone, by action
    kept: list[str]  # uris of the same group that were not undone: they were written again, by others
    more_kept: int = 0  # uris that are left out of `kept`
