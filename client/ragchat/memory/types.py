"""The results of the memory server's tools. Fields that it adds later are ignored."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from ragchat.types import Hit
from ragcommon.text.places import Place


class QueryResult(Struct, frozen=True):
    hits: list[Hit]
    empty: bool  # memory has no documents
    notice: str = ""  # how this search differs from an ordinary one, such as a search by words alone
    corrections: dict[str, str] = {}  # of misspelt words of the query, which was searched for corrected
    weights: dict[str, float] = {}  # of its content words, in (0, 1], by rarity: 1 is in no chunk at all


class Passages(Struct, frozen=True):
    """What any tool found; a tool that does not search has none."""

    hits: list[Hit] = []


class Comparison(Struct, frozen=True):
    """Numbers are in [-1, 1], in the order of the texts.

    `matches` are, for each text, the cosines of each word and its nearest word in the text; [] if memory's
    model has no vectors of single words.
    """

    similarities: list[float]
    matches: list[list[float]] = []


class ToolResult(Struct, frozen=True):
    """The result of a tool that a model called. `hits` are the passages that it found, if it searches.

    `images` are data URLs; `notes` tell the user what a model cannot show or open.
    """

    ok: bool
    text: str
    hits: list[Hit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)


class FilledPrompt(Struct, frozen=True):
    """A prompt with its arguments: the text, and what it is about.

    `documents` are ids; `texts` are not in memory, such as the changes between versions of a document.
    """

    text: str
    documents: list[str]
    texts: list[DocumentText]


class Injected(Struct, frozen=True):
    document_id: str
    uri: str
    status: Literal["added", "updated", "unchanged"]
    chunks: int


class FileOutcome(Struct, frozen=True):
    """What became of one file. `number` is its place among the files that were found."""

    uri: str  # "" for an empty path
    status: Literal["added", "updated", "unchanged", "failed", "skipped", "missing", "removed"]
    document_id: str | None = None
    chunks: int = 0
    number: int = 0
    reason: str = ""  # why it was not read: the end of a sentence about the file
    error: str = ""  # why it was not stored: a sentence
    note: str = ""  # how it was read: the end of a sentence about the file


class IngestionError(Struct, frozen=True):
    code: str
    message: str
    hint: str


class Ingestion(Struct, frozen=True):
    """A job that loads files. `run_id` is the server process that works on it."""

    job_id: str
    run_id: str
    status: Literal["running", "completed", "failed", "cancelled"]
    files: int
    begun: int
    done: int
    bytes: int
    done_bytes: int
    error: IngestionError | None = None


class SyncOutcome(Struct, frozen=True):
    """The last sync of a source. `files` counts its files by status, as in FileOutcome."""

    status: Literal["completed", "failed", "cancelled"]
    files: dict[str, int] = {}
    error: str = ""


class Source(Struct, frozen=True):
    """A file or folder that memory is kept in step with. Times are ISO 8601, UTC; "": never."""

    uri: str
    added_at: str
    synced_at: str = ""
    documents: int = 0
    outcome: SyncOutcome | None = None
    exists: bool = True
    problem: str = ""  # why it cannot be read now, as the end of a sentence


class Sources(Struct, frozen=True):
    sources: list[Source]
    next_cursor: str = ""  # "": this is the last page


class AddedSource(Struct, frozen=True):
    """The outcome of adding a source. `covers` are sources inside it, which are no longer listed."""

    uri: str
    status: Literal["added", "known", "covered", "refused"]
    covered_by: str = ""
    covers: list[str] = []
    reason: str = ""


class AddedSources(Struct, frozen=True):
    sources: list[AddedSource]


class RemovedSource(Struct, frozen=True):
    """`documents` counts those that stay in memory, or that were `forgotten`."""

    uri: str
    documents: int
    forgotten: bool


class IngestionStatus(Struct, frozen=True):
    job: Ingestion
    outcomes: list[FileOutcome]


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
    written_by: str | None = None  # the program that stored it; None: it is not known


class Documents(Struct, frozen=True):
    """Some documents. `total` counts all that match."""

    documents: list[DocumentInfo]
    total: int


class DocumentPage(Documents, frozen=True):
    next_cursor: str = ""  # "": this is the last page


class DocumentText(DocumentInfo, frozen=True, kw_only=True):
    """`image` is the data URL of a document that is an image; `text` then names it."""

    text: str
    places: list[Place] = field(default_factory=list)  # in the order of their lines
    image: str = ""

    @classmethod
    def loose(
        cls, uri: str, text: str, *, title: str = "", document_id: str = "", image: str = ""
    ) -> DocumentText:
        """A text that is not a document in memory."""
        size = len(text)
        return cls(
            document_id or uri, uri, title, 0, size, added_at="", updated_at="", text=text, image=image
        )


class DocumentPart(DocumentText, frozen=True, kw_only=True):
    """`text` is a part of the document's text."""

    next_cursor: str = ""  # "": this is the last part


class Forgotten(Struct, frozen=True):
    document_id: str
    uri: str
    chunks: int


class Origin(Struct, frozen=True):
    client: str = ""
    session: str = ""
    group: str = ""  # writes with the same one are undone as one
    host: str = ""  # the address of its machine; "": this one


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
    next_cursor: str = ""  # "": this is the last page


class Version(Struct, frozen=True):
    """A version of a document. `number` is that of the write that made it, in the journal."""

    number: int
    at: str
    action: str
    origin: Origin
    characters: int | None  # None: its text is no longer kept
    current: bool = False


class Versions(Struct, frozen=True):
    """The versions of a document, the current one first."""

    document_id: str
    uri: str
    versions: list[Version]


class Difference(Struct, frozen=True):
    """A unified diff from one version of a document to another; "" if they are equal."""

    uri: str
    before: Version | None
    after: Version
    diff: str


class DifferencePart(Difference, frozen=True):
    """`diff` is a part of the difference."""

    next_cursor: str = ""  # "": this is the last part


class Restored(Struct, frozen=True):
    document_id: str
    uri: str
    version: int
    status: Literal["added", "updated", "unchanged"]
    chunks: int
    next_sync: str = ""  # "updated", "removed": what the next sync of the sources does to it; "": nothing


class Undone(Struct, frozen=True):
    """One write or those of a group: the newest of them, and how many there were of each action.

    `kept` are the URIs of documents that others have written since, and which were not undone; `more_kept`
    counts those that are not named.
    """

    entry: Entry
    writes: dict[str, int]
    kept: list[str] = field(default_factory=list)
    more_kept: int = 0


class PortableVersion(Struct, frozen=True):
    """An earlier version of a document as it is exported."""

    text: str
    metadata: dict[str, Any] = field(default_factory=dict)
    added_at: str = ""  # ISO 8601, UTC
    places: list[tuple[int, str]] = field(default_factory=list)


class PortableDocument(Struct, frozen=True):
    """A document as it is exported."""

    text: str
    metadata: dict[str, Any] = field(default_factory=dict)
    added_at: str = ""  # ISO 8601, UTC
    updated_at: str = ""
    places: list[tuple[int, str]] = field(default_factory=list)  # first lines of pages and the like, labels
    vectors: dict[str, str] | UnsetType = UNSET  # by what was embedded
    versions: list[PortableVersion] | UnsetType = UNSET  # the earlier ones, the oldest first


class ExportPage(Struct, frozen=True):
    documents: list[PortableDocument]
    total: int  # documents in memory
    next_cursor: str = ""  # "": this is the last page
    embedder: str = ""  # of the vectors
    dimensions: int = 0


class ImportOutcome(Struct, frozen=True):
    status: Literal["added", "updated", "unchanged", "failed"]
    error: str = ""  # why it was not stored: a sentence


class Imported(Struct, frozen=True):
    outcomes: list[ImportOutcome]


class Backup(Struct, frozen=True):
    path: str
    bytes: int
    documents: int


class Reembedded(Struct, frozen=True):
    """`computed` counts the new embeddings; the old ones are kept, if `kept_embedder` is not ""."""

    chunks: int
    embedder: str
    computed: int = 0
    kept_embedder: str = ""
    kept_bytes: int = 0


class Stats(Struct, frozen=True):
    """`bytes` is the size on disk. `embedder` is "" before the first document.

    `next_embedder` is that of a reembedding that is not completed, `kept_embedder` that of kept embeddings.
    """

    path: str
    documents: int
    chunks: int
    characters: int
    bytes: int
    embedder: str
    dimensions: int
    next_embedder: str = ""
    kept_embedder: str = ""
    kept_bytes: int = 0


class Verified(Struct, frozen=True):
    """Each problem is a sentence that says what to do; `more_problems` counts those that are not named."""

    ok: bool
    problems: list[str]
    more_problems: int = 0


class Repaired(Struct, frozen=True):
    """`problems` are left, `repaired` are gone; `backup` is the copy that was made before.

    `more_problems` and `more_repaired` count those that are not named.
    """

    ok: bool
    problems: list[str]
    repaired: list[str] = field(default_factory=list)
    backup: str = ""
    more_problems: int = 0
    more_repaired: int = 0
