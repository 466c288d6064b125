from __future__ import annotations

import pytest

from ragmemory.errors import (
    BackupFailed,
    BadArgument,
    BlockNotFound,
    ChunkNotFound,
    CommitUnknown,
    CopyFailed,
    DatabaseUnavailable,
    DocumentExists,
    DocumentNotFound,
    EmbedderMismatch,
    EmbedderUnavailable,
    IndexUnavailable,
    IngestionFailed,
    IngestionGivenUp,
    IngestionNotFound,
    MemoryBusy,
    MemoryDamaged,
    MemoryFull,
    MemoryReadOnly,
    MemoryTooNew,
    MemoryUnusable,
    NoSources,
    NotAMemory,
    NotAnIndex,
    NotAWrite,
    NothingToUndo,
    NotStored,
    NotUndoable,
    NotWrittenBack,
    PagesNotAllowed,
    PathNotAllowed,
    PlaceError,
    RagMemoryError,
    ReembeddingEnded,
    RerankerUnavailable,
    SourceNotFound,
    StaleVersion,
    TextRefused,
    UndoConflict,
    VersionNotFound,
    VersionNotKept,
    WrittenLater,
)

SENTENCES = [
    (MemoryUnusable("/m.db", "disk full"), "The memory /m.db cannot be used: disk full."),
    (
        DatabaseUnavailable("postgresql://db/notes", "no route"),
        "The memory postgresql://db/notes is not available: no route.",
    ),
    (
        CommitUnknown("postgresql://db/notes"),
        "The connection to the memory postgresql://db/notes was lost during a commit: "
        "the write may be stored or not.",
    ),
    (MemoryFull("/m.db"), "The memory /m.db cannot be written: the disk is full."),
    (MemoryReadOnly("/m.db", "its disk is"), "The memory /m.db cannot be written: its disk is."),
    (MemoryDamaged("/m.db", "malformed"), "The memory /m.db is damaged: malformed."),
    (MemoryDamaged("/m.db", "malformed", "page 7"), "The memory /m.db is damaged at page 7: malformed."),
    (
        NotAMemory("/m.db", "it is not an SQLite database"),
        "/m.db is not a memory: it is not an SQLite database.",
    ),
    (
        NotAnIndex("/m.db-index", "photos"),
        "The folder /m.db-index is not a search index of this program: it holds photos.",
    ),
    (MemoryTooNew("/m.db", 9, 1), "The memory /m.db has version 9; this release supports up to 1."),
    (MemoryBusy("/m.db", 30.0), "Another process has been writing to the memory /m.db for over 30 s."),
    (EmbedderUnavailable("openai:x", "refused"), "The embedder openai:x is not available: refused."),
    (RerankerUnavailable("cross", "too slow"), "The reranker cross is not available: too slow."),
    (IndexUnavailable("pgvector", "no such table"), "The index pgvector is not available: no such table."),
    (TextRefused("openai:x", "it is too long"), "The embedder openai:x refused the text: it is too long."),
    (
        EmbedderMismatch("local:a", 256, "openai:b"),
        "The memory was embedded with local:a (256 dimensions), but openai:b is configured.",
    ),
    (
        EmbedderMismatch("local:a", 256, "local:a", 512),
        "The memory was embedded with local:a (256 dimensions), but local:a (512 dimensions) is configured.",
    ),
    (ReembeddingEnded("openai:x"), "Another process has ended the reembedding with openai:x."),
    (BadArgument("metadata.tags", "must be a list of texts"), "metadata.tags must be a list of texts."),
    (SourceNotFound("file:///a"), "file:///a is not a source."),
    (
        SourceNotFound("file:///a/b", "file:///a"),
        "file:///a/b is not a source, but inside file:///a, which is one.",
    ),
    (NoSources(["annes", "berts"]), "There are no sources yet on this machine, but on annes, berts."),
    (ChunkNotFound(7), "There is no chunk 7 in memory."),
    (DocumentNotFound("file:///x"), "There is no document file:///x in memory."),
    (BlockNotFound("pie", "1.z"), "pie has no block 1.z."),
    (DocumentExists("pie"), "There is a document pie already."),
    (StaleVersion("pie", 3, 5), "pie is at version 5, so an edit of version 3 was refused."),
    (
        NotWrittenBack("file:///pie.md", "it is write-protected"),
        "Nothing was changed, because file:///pie.md cannot be written: it is write-protected.",
    ),
    (NothingToUndo(), "There is nothing to undo."),
    (
        CopyFailed("/c.db", "it already exists"),
        "The memory cannot be copied to /c.db: it already exists.",
    ),
    (BackupFailed("/b.db", "it already exists"), "The backup /b.db cannot be written: it already exists."),
    (NotAWrite(7), "There is no write 7 in the journal that could be undone. Nothing was changed."),
    (
        WrittenLater(["a", "b"]),
        "Nothing was undone, because these documents were written again later: a, b.",
    ),
    (VersionNotFound("pie", 7), "pie has no version 7 with a text."),
    (VersionNotFound("pie", 0), "pie has no earlier version with a text."),
    (VersionNotKept("pie", 7), "The text of version 7 of pie is no longer kept."),
    (
        UndoConflict(7),
        "Entry 7 of the journal is no longer the last write to its document, so it was not undone.",
    ),
    (
        NotUndoable(3, "updated", "thesis.txt"),
        "Entry 3 of the journal (thesis.txt was updated) cannot be undone: "
        "the previous text is no longer kept. Nothing was changed.",
    ),
    (
        NotStored("a.md", "UNIQUE constraint failed"),
        "The document a.md could not be stored: UNIQUE constraint failed.",
    ),
    (
        PagesNotAllowed("https://example.org/tea"),
        "https://example.org/tea is an address on the web, which this server does not load by itself.",
    ),
    (
        PathNotAllowed("file:///notes"),
        "file:///notes may not be read: it is in none of the folders that the setting memory.roots names.",
    ),
    (SourceNotFound("file:///notes"), "file:///notes is not a source."),
    (
        SourceNotFound("file:///notes/a", "file:///notes"),
        "file:///notes/a is not a source, but inside file:///notes, which is one.",
    ),
    (
        RerankerUnavailable("fastembed:mini", "it took too long"),
        "The reranker fastembed:mini is not available: it took too long.",
    ),
    (IngestionNotFound("x"), "There is no ingestion 'x'."),
    (
        IngestionGivenUp(5),
        "The load was given up: 5 times in a row, the process that worked on it was killed.",
    ),
    (IngestionFailed("a fault"), "The ingestion ended with an internal error: a fault."),
]


@pytest.mark.parametrize(("error", "sentence"), SENTENCES, ids=lambda value: type(value).__name__)
def test_an_error_writes_its_own_sentence(error: RagMemoryError, sentence: str) -> None:
    assert str(error) == sentence


def test_the_table_holds_every_error() -> None:
    errors = RagMemoryError.__subclasses__()
    errors += [kind for error in errors for kind in error.__subclasses__()]
    assert {type(error) for error, _ in SENTENCES} == {*errors} - {PlaceError}


def test_the_details_of_an_error_are_its_data_without_the_hint() -> None:
    assert EmbedderUnavailable("x", "down", "Start it.").details() == {"embedder": "x", "reason": "down"}
    assert NothingToUndo().details() == {}


def test_an_embedder_mismatch_names_the_command_that_embeds_again() -> None:
    assert "ragchat memory reembed" in EmbedderMismatch("a", 1, "b").hint


def test_a_hint_that_names_a_command_names_its_tool_as_well() -> None:
    """A model that reads it has no shell."""
    tools = {
        "`ragchat memory log`": "list_journal",
        "`ragchat memory ls`": "list_documents",
        "`ragchat memory verify`": "verify_memory",
        "`ragchat memory versions`": "list_versions",
        "`ragchat source add PATH`": "add_sources",
        "`ragchat source ls`": "list_sources",
    }
    hints = {error.hint for error, _ in SENTENCES}
    for command, tool in tools.items():
        named = [hint for hint in hints if command in hint]
        assert named, command
        assert all(tool in hint for hint in named), named
