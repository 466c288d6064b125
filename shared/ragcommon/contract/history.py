"""The journal, versions of documents, undo."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from ragcommon.contract.documents import Status

Action = Literal["added", "updated", "removed", "restored"]


class Origin(Struct, frozen=True):
    """The client of a write, for the journal."""

    client: str = ""
    session: str = ""
    group: str = ""  # the writes of one load or one removal, which are undone together; "": undone alone
    host: str = ""  # the address of its machine, or the owner of its token; "" for this one's pipes


class Entry(Struct, frozen=True):
    """One entry of the journal."""

    seq: int
    at: str  # ISO 8601, UTC
    action: Action
    document_id: str
    uri: str
    origin: Origin
    undone: bool = False


class JournalPage(Struct, frozen=True):
    entries: list[Entry]  # newest first
    next_cursor: str | UnsetType = UNSET  # there are more


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


class VersionPage(Versions, frozen=True):
    next_cursor: str | UnsetType = UNSET  # there are more


class Difference(Struct, frozen=True):
    """What changed from one version of a document to another."""

    uri: str
    before: Version | None  # None: there is no earlier version
    after: Version
    diff: str  # unified, of the text and then of the metadata; "" if they are equal


class DifferencePart(Difference, frozen=True):
    next_cursor: str | UnsetType = UNSET  # there is more of the diff


class Restored(Struct, frozen=True):
    """The outcome of one `restore`."""

    document_id: str
    uri: str
    version: int  # the version that is the current one again
    status: Status
    chunks: int
    next_sync: Literal["", "updated", "removed"] = ""  # what the next sync of the sources does to it again


class Undone(Struct, frozen=True):
    """The outcome of one `undo`."""

    entry: Entry  # the newest of those undone
    writes: dict[str, int]  # how many were undone, by action
    kept: list[str]  # uris of the same group that were not undone: they were written again, by others
    more_kept: int = 0  # uris that are left out of `kept`
    by_document: dict[str, int] = {}  # like `writes`, but of each document only the first one that was undone
