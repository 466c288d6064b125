"""Files and folders: the jobs that load them, and the sources that memory is kept in step with."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType


class FileOutcome(Struct, frozen=True):
    """What became of one file of an ingestion.

    "missing": memory has the document, but the file no longer exists; "removed": the document was removed,
    for that or another reason.
    """

    uri: str  # "" for an empty path
    status: Literal["added", "updated", "unchanged", "failed", "skipped", "missing", "removed"]
    document_id: str | None = None
    chunks: int = 0
    number: int = 0  # of the files that the walk found, from 1; 0: the walk did not find it
    reason: str = ""  # why it was not read, or was removed: the end of a sentence about the file
    error: str = ""  # why it was not stored: a sentence
    note: str = ""  # how it was read, such as "is not UTF-8; it was read as cp1252"


class IngestionError(Struct, frozen=True):
    """The error that ended an ingestion."""

    code: str
    message: str
    hint: str


class Ingestion(Struct):
    """A background job that loads files and folders."""

    job_id: str
    sources: list[str]  # URIs of files and folders: a path need not be UTF-8
    prune: bool  # remove the documents whose files no longer exist
    run_id: str  # of the process that works on it: another one resumes it after a kill, from its beginning
    group: str  # of its writes: they are undone as one
    started_at: str  # ISO 8601, UTC
    status: Literal["running", "completed", "failed", "cancelled"] = "running"
    ended_at: str = ""
    files: int = 0  # found so far
    begun: int = 0  # done or in work; of a cancelled job, done or perhaps stored
    done: int = 0
    bytes: int = 0  # of the files
    done_bytes: int = 0
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    failed: int = 0
    skipped: int = 0
    removed: int = 0
    missing: int = 0
    scanning: str = ""  # the scanned page that was read last, such as "a.pdf, page 3 of 20"
    seconds: float = 0.0
    rate: float = 0.0  # files per second
    seconds_left: float | None = None  # estimated from the bytes; None: not known yet
    failures: list[FileOutcome] = []  # the first of them
    error: IngestionError | None = None
    within: list[str] = []  # URIs: only these files and folders of the sources; []: all
    resumed: int = 0  # how often in a row it was resumed after a kill without having stored a document
    silent_seconds: float = 0.0  # since the process of a running job last saved it, as it does each second


class IngestionStatus(Struct, frozen=True):
    job: Ingestion
    outcomes: list[FileOutcome]  # of the files from number `after` on


class IngestionList(Struct, frozen=True):
    ingestions: list[Ingestion]  # newest first
    next_cursor: str | UnsetType = UNSET  # there are more


class SyncOutcome(Struct, frozen=True):
    """The last sync of a source. `files` counts its files by status, as in FileOutcome."""

    status: Literal["completed", "failed", "cancelled"]
    files: dict[str, int] = {}
    error: str = ""


class Source(Struct, frozen=True):
    """A file or folder that memory is kept in step with."""

    uri: str
    added_at: str  # ISO 8601, UTC
    synced_at: str = ""  # when its last sync ended; "": never
    documents: int = 0  # that memory holds of it
    outcome: SyncOutcome | None = None  # of that sync
    exists: bool = True  # the file or folder
    problem: str = ""  # why it cannot be read now, as the end of a sentence; "": it can
    machine: str = ""  # the other machine that it is on; "": this one


class SourcePage(Struct, frozen=True):
    sources: list[Source]
    next_cursor: str | UnsetType = UNSET  # there are more


class AddedSource(Struct, frozen=True):
    """The outcome of adding a source.

    "known": it was a source already; "covered": a source contains it, so it is not added.
    """

    uri: str  # "" for an empty path
    status: Literal["added", "known", "covered", "refused"]
    covered_by: str = ""  # the uri of that source
    covers: list[str] = []  # uris of sources that it contains, and which are removed from the list
    reason: str = ""  # why it was refused: the end of a sentence about the path


class AddedSources(Struct, frozen=True):
    sources: list[AddedSource]


class RemovedSource(Struct, frozen=True):
    """The outcome of removing a source: its documents stay, or were removed as well."""

    uri: str
    documents: int  # that memory held of it alone
    forgotten: bool
