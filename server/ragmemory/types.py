"""The plain types that the parts of the memory exchange. No behaviour, no MCP, no numpy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType, field

from ragconfig.places import Place

Metadata = dict[str, Any]
# The embedding of one chunk, as it is stored: (d,) little-endian float16, unit length.
Embedding: TypeAlias = bytes
Status = Literal["added", "updated", "unchanged"]
Change = Literal["added", "updated", "removed"]


class Chunk(Struct, frozen=True):
    """A range of a document's text. The chunks of a document cover its text without gap or overlap."""

    start: int  # offset of the first character
    end: int  # offset after the last character
    start_line: int  # 1-based
    end_line: int  # 1-based, inclusive
    heading: str  # the path of headings above it, joined by " > "; "" if there are none
    context: str = ""  # the header of the table that it continues: a part of an earlier chunk, repeated
    surroundings: str = ""  # the neighbours of a turn in a conversation: searched and embedded, never quoted


class Origin(Struct, frozen=True):
    """The client of a write, for the journal."""

    client: str = ""
    session: str = ""
    group: str = ""  # the writes of one load or one removal, which are undone together; "": undone alone
    host: str = ""  # the address of its machine; "" for this one's pipes


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
    is_markdown: bool = True
    places: list[Place] = []  # in the order of their lines


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
    known: dict[bytes, Embedding] = {}  # embeddings that need not be computed, by digests as in `inputs`
    undoes: int | None = None  # the journal entry that this write undoes
    edit: Edit | None = None
    added_at: str = ""  # ISO 8601, UTC; "": now, unless the document exists
    updated_at: str = ""  # ISO 8601, UTC; "": now


class Injected(Struct, frozen=True):
    """The outcome of one `inject`."""

    document_id: str
    uri: str
    status: Status
    chunks: int


class StoredFile(Struct, frozen=True):
    """What is stored of one file."""

    document_id: str
    chunks: int
    stamp: str


class FileOutcome(Struct, frozen=True):
    """What became of one file of an ingestion.

    "missing": memory has the document, but the file no longer exists; "removed": so it was removed.
    """

    uri: str  # "" for an empty path
    status: Literal["added", "updated", "unchanged", "failed", "skipped", "missing", "removed"]
    document_id: str | None = None
    chunks: int = 0
    number: int = 0  # of the files that the walk found, from 1; 0: the walk did not find it
    reason: str = ""  # why it was not read: the end of a sentence about the file
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
    begun: int = 0
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
    seconds: float = 0.0
    rate: float = 0.0  # files per second
    seconds_left: float | None = None  # estimated from the bytes; None: not known yet
    failures: list[FileOutcome] = []  # the first of them
    error: IngestionError | None = None
    within: list[str] = []  # URIs: only these files and folders of the sources; []: all


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


class AddedSource(Struct, frozen=True):
    """The outcome of adding a source.

    "known": it was a source already; "covered": a source contains it, so it is not added.
    """

    uri: str  # "" for an empty path
    status: Literal["added", "known", "covered", "refused"]
    covered_by: str = ""  # the uri of that source
    covers: list[str] = []  # uris of sources that it contains, and which are removed from the list
    reason: str = ""  # why it was refused: the end of a sentence about the path


class RemovedSource(Struct, frozen=True):
    """The outcome of removing a source: its documents stay, or were removed as well."""

    uri: str
    documents: int  # that memory held of it alone
    forgotten: bool


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


class Hit(Struct, frozen=True):
    """One found chunk. `score` is in [0, 1] and comparable between queries."""

    rank: int  # from 1
    score: float
    chunk_id: int
    document_id: str
    uri: str
    title: str
    heading: str
    start_line: int
    end_line: int
    text: str
    metadata: Metadata
    context: str = ""  # the header of the table that `text` continues; "" if it needs none
    location: str = ""  # such as "thesis.pdf p. 12" or "notes.md:3–5"
    places: list[Place] = []  # those of its lines
    surroundings: str = ""  # the neighbours of a turn in a conversation, by which it was found as well
    rerank_score: float | UnsetType = UNSET  # in [0, 1]; by it hits are ordered, if there is a reranker


class QueryResult(Struct, frozen=True):
    """The outcome of one `query`."""

    hits: list[Hit]  # best first
    empty: bool  # the memory holds no documents
    notice: str = ""  # how this search differs from an ordinary one, such as "Searched by words alone. …"
    corrections: dict[str, str] = {}  # of misspelt words of the query, which was searched for corrected
    missing: list[str] = []  # the content words of the query that no hit contains
    weights: dict[str, float] = {}  # of its content words, in (0, 1], by rarity: 1 is in no chunk at all


class DocumentInfo(Struct, frozen=True):
    document_id: str
    uri: str
    title: str
    chunks: int
    characters: int
    added_at: str  # ISO 8601, UTC
    updated_at: str
    metadata: Metadata = field(default_factory=dict)


DocumentOrder = Literal["uri", "title", "added_at", "updated_at", "characters"]


class DocumentPart(DocumentInfo, frozen=True, kw_only=True):
    """A document with some of its lines."""

    text: str
    start_line: int  # of the text, from 1; that line may have begun on the page before
    end_line: int  # inclusive
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


class ShownBlock(Struct, frozen=True, kw_only=True):
    """A block of a document. Its lines include the blocks below it, its text does not."""

    document_id: str
    uri: str
    title: str
    version: int  # of the document, to be named by an edit
    block_id: str
    number: int  # among the blocks of the document, from 1
    label: str  # such as "1.2.a"
    kind: Literal["heading", "paragraph", "list", "item", "table", "code", "quote"]
    level: int  # of a heading, from 1; 0: not a heading
    heading: str  # the path of headings above it
    start_line: int
    end_line: int
    text: str


class EditedBlock(Struct, frozen=True):
    """A block that an edit has written."""

    block_id: str
    number: int
    label: str
    kind: Literal["heading", "paragraph", "list", "item", "table", "code", "quote"]
    start_line: int
    end_line: int


class EditedDocument(Struct, frozen=True):
    """The outcome of one edit."""

    document_id: str
    uri: str
    status: Status
    version: int  # the new version, to be named by the next edit
    blocks: list[EditedBlock]  # the first ones that were written
    removed: list[str]  # ids of blocks that no longer exist
    file: str  # the path of the file that was written as well; "": none


class CodeFile(Struct, frozen=True):
    """A document of source code."""

    document_id: str
    uri: str
    digest: bytes  # SHA-256 of the text
    characters: int


Direction = Literal["all", "definition", "references", "callers", "callees", "importers"]
Relation = Literal["reference", "importer", "caller", "callee"]


class Symbol(Struct, frozen=True, kw_only=True):
    """A definition in source code."""

    name: str  # qualified, such as Store.find
    kind: Literal[
        "class", "function", "value"
    ]  # a class is any type or module, a value a constant or the like
    language: str
    location: str  # path:line
    uri: str
    start_line: int  # of the comments and decorators above it
    end_line: int
    text: str  # its source


class TraceStep(Struct, frozen=True, kw_only=True):
    """One use of a symbol."""

    relation: Relation
    depth: int  # 1: of the symbol itself; 2: of what was found at 1
    symbol: str  # the function or class that uses it; "": the file outside of any
    of: str  # what is used there
    location: str  # path:line
    uri: str
    line: int
    text: str  # that line
    targets: list[str] = []  # of a callee: where it may be defined, as path:line; []: not in memory


class Trace(Struct, frozen=True, kw_only=True):
    """The outcome of one `trace`."""

    name: str
    definitions: list[Symbol]
    steps: list[TraceStep]
    notices: list[str]  # why the answer is not complete


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


class Forgotten(Struct, frozen=True):
    """The outcome of one `forget`."""

    document_id: str
    uri: str
    chunks: int


class PortableDocument(Struct, frozen=True):
    """A document as it is exported. Its uri and title follow from the text and the metadata."""

    text: str
    metadata: Metadata = {}
    added_at: str = ""  # ISO 8601, UTC; "": now
    updated_at: str = ""  # ISO 8601, UTC; "": now
    places: list[Place] = []  # in the order of their lines
    # Embeddings in base64 by the digests, in hexadecimal, of what was embedded: see `preparation.digest_of`.
    vectors: dict[str, str] | UnsetType = UNSET


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
    backup: str = ""  # the copy that was made before; "": nothing had to be repaired
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


class Checkpoint(Struct, frozen=True):
    """How far an index has followed the store: chunk ids and removal numbers only ever grow.

    It includes the number and time of the journal's last entry: a store without that entry, such as one that
    was restored from an older copy, was never at this checkpoint.
    """

    chunk_id: int = 0
    removal: int = 0
    entry: int = 0
    entry_at: str = ""


class Changes(Struct, frozen=True):
    """The changes between two checkpoints, for an index. The lists of chunks are parallel."""

    checkpoint: Checkpoint
    chunk_ids: list[int]
    titles: list[str]
    headings: list[str]
    texts: list[str]  # each after its context
    surroundings: list[str]
    embeddings: list[Embedding]
    removed: list[int]  # chunk ids, some of which the index may never have seen
