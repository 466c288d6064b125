"""The errors of the memory. `code` is the `errorCode` on the wire.

Hints name commands. The descriptions and notices of tools, which models read, name tools.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragcommon.errors import StructuredError

# Documents that a sentence names; beyond that, only their number is given.
_NAMED = 5


class RagMemoryError(StructuredError):
    """The root of the memory's errors."""

    code = "MEMORY_ERROR"


class PlaceError(RagMemoryError):
    """About a file, or a database, whose URL is `path` then; `reason` is the end of a sentence."""

    path: str
    reason: str


# The reason in MemoryUnusable after `close`; no hint helps.
CLOSED = "it has been closed"
# The hint of MemoryReadOnly where only the setting, or the argument of a script, forbids to write.
OF_READ_ONLY = "Open it without read_only, or name another file."


class MemoryUnusable(PlaceError):
    """The file cannot be opened, read or written."""

    sentence = "The memory {path} cannot be used: {reason}."
    hint: str = (
        "Check the permissions of the file and its folder and the free disk space, or name another file."
    )


class DatabaseUnavailable(PlaceError):
    """The database of a memory cannot be reached, or refuses what it is asked for."""

    hint: str = (
        "Check that the server runs, and store.url; "
        "a password is read from PGPASSWORD or ~/.pgpass (mode 600)."
    )
    code = "MEMORY_UNAVAILABLE"
    sentence = "The memory {path} is not available: {reason}."


class CommitUnknown(RagMemoryError):
    """The connection was lost between the commit and its confirmation."""

    path: str  # the URL
    sentence = "The connection to the memory {path} was lost during a commit: the write may be stored or not."
    hint = "Repeat it, which is safe: what is stored already is not stored again."


class MemoryFull(RagMemoryError):
    """The disk has no room for a write. What is stored can still be read."""

    path: str
    sentence = "The memory {path} cannot be written: the disk is full."
    hint = "Free some space, then try again; what is stored is still there."


class MemoryReadOnly(PlaceError):
    """The file may be read but not written."""

    sentence = "The memory {path} cannot be written: {reason}."
    hint: str = "Make the file and its folder writable, or name another file."


class MemoryDamaged(PlaceError):
    """The file, or what is stored in it, was changed or cut off by something other than this program.

    `place` is for example "page 7 of the table chunks"; "" if it is unknown.
    """

    place: str = ""
    sentence = "The memory {path} is damaged{at_place}: {reason}."
    hint = "`ragchat memory verify` and the tool verify_memory list the damage and the remedies."

    @property
    def at_place(self) -> str:
        return f" at {self.place}" if self.place else ""


class NotAMemory(PlaceError):
    """The file is not an SQLite database, or it is another program's."""

    sentence = "{path} is not a memory: {reason}."
    hint = (
        "Name another file with --memory; this one was left as it is. If it was a memory, its first page is "
        "damaged: restore a backup."
    )


class NotAnIndex(RagMemoryError):
    """The folder where the index belongs holds something else."""

    folder: str
    entry: str
    sentence = "The folder {folder} is not a search index of this program: it holds {entry}."
    hint = "Move that folder away, or name another memory with --memory. It was left as it is."


class MemoryTooNew(RagMemoryError):
    """A later release wrote the file."""

    path: str
    version: int
    known: int
    sentence = "The memory {path} has version {version}; this release supports up to {known}."
    hint = "Update ragchat (on the server, if one serves this memory), or name another memory."


class MemoryBusy(RagMemoryError):
    """Another process held the write lock for longer than the time-out."""

    path: str
    seconds: float
    sentence = "Another process has been writing to the memory {path} for over {seconds:g} s."
    hint = "Try again, or raise memory.busy_seconds."


class EmbedderUnavailable(RagMemoryError):
    """The embedder gave no embeddings: not reachable, refused the request, or its files are missing."""

    embedder: str
    reason: str
    hint: str = "Check the settings under [embedder]; `ragchat doctor` tests them."
    sentence = "The embedder {embedder} is not available: {reason}."


class RerankerUnavailable(RagMemoryError):
    """The reranker gave no scores, or not in time. The order of the search is kept."""

    reranker: str
    reason: str
    hint: str = ""
    sentence = "The reranker {reranker} is not available: {reason}."


class IndexUnavailable(RagMemoryError):
    """The server of a remote index cannot be reached, or refuses what it is asked for."""

    index: str
    reason: str
    hint: str = "Check that the server runs, and index.url."
    sentence = "The index {index} is not available: {reason}."


class TextRefused(EmbedderUnavailable):
    """The embedder refused these texts; it may accept others."""

    code = "EMBEDDER_UNAVAILABLE"
    sentence = "The embedder {embedder} refused the text: {reason}."


class EmbedderMismatch(RagMemoryError):
    """Another embedder embedded the memory; vectors of two embedders are never mixed.

    `configured_dimensions` is 0 while a service has not answered yet.
    """

    stored: str
    stored_dimensions: int
    configured: str
    configured_dimensions: int = 0
    code = "EMBEDDER_MISMATCH"
    hint = "Set the embedder back, or embed the memory again with `ragchat memory reembed`."

    def __str__(self) -> str:
        stored = _sized(self.stored, self.stored_dimensions)
        configured = _sized(self.configured, self.configured_dimensions)
        return f"The memory was embedded with {stored}, but {configured} is configured."


def _sized(embedder: str, dimensions: int) -> str:
    return f"{embedder} ({dimensions} dimensions)" if dimensions else embedder


class ReembeddingEnded(RagMemoryError):
    """Another process began to embed the memory with another embedder, or discarded the embeddings."""

    embedder: str
    sentence = "Another process has ended the reembedding with {embedder}."
    hint = "Run `ragchat memory reembed` again."


class BadArgument(RagMemoryError):
    """An empty text, or a metadata or filter value of the wrong kind. `path` is dotted: `metadata.tags`."""

    path: str
    reason: str
    code = "INVALID_PARAMS"
    sentence = "{path} {reason}."


class DocumentNotFound(RagMemoryError):
    """No document has this id or URI."""

    document: str
    code = "RESOURCE_NOT_FOUND"
    sentence = "There is no document {document} in memory."
    hint = "`ragchat memory ls` and the tool list_documents list the documents."


class ChunkNotFound(RagMemoryError):
    """No chunk has this id, or no longer: a document that changes gets new chunks."""

    chunk_id: int
    code = "RESOURCE_NOT_FOUND"
    sentence = "There is no chunk {chunk_id} in memory."
    hint = "Search again: a document that has changed has new chunks."


class NothingToUndo(RagMemoryError):
    """The journal holds no write that is not undone."""

    sentence = "There is nothing to undo."


class UndoConflict(RagMemoryError):
    """Another process has undone the write, or written its document again, in the meantime."""

    seq: int
    sentence = "Entry {seq} of the journal is no longer the last write to its document, so it was not undone."
    hint = "Look at the journal, then try again."


class NotAWrite(RagMemoryError):
    """A number to undo that no write has."""

    seq: int
    code = "NOT_UNDOABLE"
    sentence = "There is no write {seq} in the journal that could be undone. Nothing was changed."
    hint = (
        "`ragchat memory log` and the tool list_journal list the writes with their numbers; "
        "an undo cannot be undone."
    )


class WrittenLater(RagMemoryError):
    """Other writes, which are not to be undone, have written these documents again."""

    uris: Sequence[str]
    code = "UNDO_CONFLICT"
    sentence = "Nothing was undone, because these documents were written again later: {named}."
    hint = "Undo the later writes as well; `ragchat memory log` and the tool list_journal list them."

    @property
    def named(self) -> Sequence[str]:
        more = len(self.uris) - _NAMED
        return [*self.uris[:_NAMED], *([f"{more:,} more"] if more > 0 else [])]


class NotUndoable(RagMemoryError):
    """A write replaced or removed a text that the journal no longer keeps."""

    seq: int
    action: str
    uri: str
    sentence = (
        "Entry {seq} of the journal ({uri} was {action}) cannot be undone: "
        "the previous text is no longer kept. Nothing was changed."
    )
    hint = "memory.undo_depth is the number of writes whose previous texts are kept."


class VersionNotFound(RagMemoryError):
    """A document has no version with this number; 0: none before the current one."""

    uri: str
    version: int
    code = "VERSION_NOT_FOUND"
    hint = "`ragchat memory versions` and the tool list_versions list the versions of a document."

    def __str__(self) -> str:
        which = f"version {self.version}" if self.version else "earlier version"
        return f"{self.uri} has no {which} with a text."


class VersionNotKept(RagMemoryError):
    """The journal no longer keeps the text of a version."""

    uri: str
    version: int
    sentence = "The text of version {version} of {uri} is no longer kept."
    hint = "memory.undo_depth is the number of writes whose previous texts are kept."


class StaleVersion(RagMemoryError):
    """An edit of a version that is no longer the current one."""

    uri: str
    version: int
    current: int
    sentence = "{uri} is at version {current}, so an edit of version {version} was refused."
    hint = "Read its blocks again, and edit the current version."


class BlockNotFound(RagMemoryError):
    """A document has no block of this id, label or number."""

    uri: str
    block: str
    code = "RESOURCE_NOT_FOUND"
    sentence = "{uri} has no block {block}."
    hint = "Read the blocks of the document again: their ids, labels and numbers name them."


class DocumentExists(RagMemoryError):
    """A new document has the uri of one that is stored."""

    uri: str
    sentence = "There is a document {uri} already."
    hint = "Choose another title or uri, or edit the blocks of that document."


class NotWrittenBack(RagMemoryError):
    """An edit cannot be written to the file of its document; memory was not changed either."""

    uri: str
    reason: str
    hint: str = "Without write_back, the edit changes memory alone."
    sentence = "Nothing was changed, because {uri} cannot be written: {reason}."


class BackupFailed(PlaceError):
    """A backup cannot be written to this file."""

    hint: str = "Choose another file for the backup."
    sentence = "The backup {path} cannot be written: {reason}."


class CopyFailed(PlaceError):
    """A memory cannot be copied to this place."""

    hint: str = "Choose another place for the copy."
    sentence = "The memory cannot be copied to {path}: {reason}."


class NotStored(RagMemoryError):
    """One document could not be written; others of the same batch were."""

    uri: str
    reason: str
    sentence = "The document {uri} could not be stored: {reason}."


class PathNotAllowed(RagMemoryError):
    """A job names a file or folder outside of those from which files may be read."""

    uri: str
    sentence = "{uri} may not be read: it is in none of the folders that the setting memory.roots names."
    hint = 'Add its folder to memory.roots in the settings of this server, or "*" for every file of yours.'


class PagesNotAllowed(RagMemoryError):
    """A job names a web address, but the caller may be a model or another program, not the user."""

    address: str
    sentence = "{address} is an address on the web, which this server does not load by itself."
    hint = "The commands `ragchat inject` and `ragchat source add` load web pages."


class SourceNotFound(RagMemoryError):
    """The file or folder is no source of this machine.

    `covered_by` is a source that contains it, or ""; `others` are the machines that have it as a source.
    """

    path: str
    covered_by: str = ""
    others: Sequence[str] = ()
    hint: str = "`ragchat source ls` and the tool list_sources list them."
    code = "RESOURCE_NOT_FOUND"

    def __str__(self) -> str:
        inside = f", but inside {self.covered_by}, which is one" if self.covered_by else ""
        of = f" of this machine, but of {', '.join(self.others)}" if self.others else ""
        return f"{self.path} is not a source{of or inside}."


class NoSources(RagMemoryError):
    """`others` are the machines that have sources."""

    others: Sequence[str] = ()
    hint: str = (
        "`ragchat source add PATH` and the tool add_sources add a folder; `ragchat sync PATH` needs none."
    )
    sentence = "There are no sources yet{elsewhere}."

    @property
    def elsewhere(self) -> str:
        return f" on this machine, but on {', '.join(self.others)}" if self.others else ""


class IngestionNotFound(RagMemoryError):
    """There is no job with this id."""

    job_id: str
    code = "RESOURCE_NOT_FOUND"
    sentence = "There is no ingestion {job_id!r}."
    hint = "Only the last hundred are kept."


class IngestionGivenUp(RagMemoryError):
    """Each process that worked on a job was killed."""

    times: int
    sentence = "The load was given up: {times} times in a row, the process that worked on it was killed."
    hint = "A file may need more memory than there is: leave it out, or split it, and load again."


class IngestionFailed(RagMemoryError):
    """A job ended with an error of the program."""

    reason: str
    code = "INTERNAL_ERROR"
    sentence = "The ingestion ended with an internal error: {reason}."
    hint = "The log of the server has the details."


def first_line(error: Exception) -> str:
    """The first line of what a library says, without its full stop."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".:")
