"""Writes: added, unchanged, updated, refused, and what one write that fails means for the others.

Covers `chunks`, `engine` and `store`.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import anyio
import pytest
from msgspec.structs import replace

from ragcommon.contract.documents import Injected
from ragmemory.errors import (
    EmbedderMismatch,
    MemoryFull,
)
from ragmemory.ingest.documents import complete
from ragmemory.stores.sqlite.file import SqliteEngine
from ragmemory.stores.store import Store
from ragmemory.types.changes import Checkpoint
from ragmemory.types.writes import Chunk, Write
from tests.support.memories import EMBEDDER, ORIGIN, write_of
from tests.support.stores import BOTH_ENGINES, SQLITE_ONLY, put, status

pytestmark = BOTH_ENGINES


async def test_a_document_is_added_then_unchanged_then_updated(store: Store) -> None:
    assert [status(await put(store, text)) for text in ("one", "one", "two")] == [
        "added",
        "unchanged",
        "updated",
    ]
    assert (await store.documents.read("doc"))[1] == "two"


async def test_a_document_can_be_written_without_chunks_when_only_its_metadata_is_new(store: Store) -> None:
    await put(store, "text" * 10, year=1)
    before = await store.changes.since(Checkpoint(), 10)
    write = replace(write_of("text" * 10, {"uri": "doc", "year": 2}), chunks=None, embeddings=[])
    [outcome] = await store.write([write], None)
    assert outcome == Injected((await store.documents.find("doc")).document_id, "doc", "updated", 2)
    assert (await store.documents.find("doc")).metadata == {"uri": "doc", "year": 2}
    after = await store.changes.since(Checkpoint(), 10)
    assert (after.chunk_ids, after.removed) == (before.chunk_ids, before.removed)


async def test_a_write_that_needs_chunks_and_has_none_is_handed_back(store: Store) -> None:
    bare = replace(write_of("text", {"uri": "gone"}), chunks=None, embeddings=[])
    assert await store.write([bare, write_of("other", {"uri": "there"})], EMBEDDER) == [
        None,
        Injected((await store.documents.find("there")).document_id, "there", "added", 1),
    ]


async def test_a_new_title_counts_as_a_new_text_because_it_is_indexed(store: Store) -> None:
    await put(store, "text", title="Old")
    checkpoint = (await store.changes.since(Checkpoint(), 10)).checkpoint
    await put(store, "text", title="New")
    changes = await store.changes.since(checkpoint, 10)
    assert (changes.titles, changes.removed) == (["New"], [1])
    assert await store.passages.holding(["old"], []) == set()
    assert await store.passages.holding(["new"], []) == {2}


async def test_a_write_with_embeddings_of_another_embedder_fails_and_leaves_nothing_behind(
    store: Store,
) -> None:
    await put(store, "one", year=1)
    without = replace(write_of("one", {"uri": "doc", "year": 2}), chunks=None, embeddings=[])
    writes = [write_of("two", {"uri": "b"}), without]
    mismatch, updated = await store.write(writes, ("other", 2))
    assert isinstance(mismatch, EmbedderMismatch)
    assert mismatch.stored == "tests:two"
    assert isinstance(updated, Injected)
    assert [entry.uri for entry in await store.journal.entries(10)] == ["doc", "doc"]
    [other_size] = await store.write([write_of("two", {"uri": "b"})], (EMBEDDER[0], 3))
    assert isinstance(other_size, EmbedderMismatch)


@SQLITE_ONLY
async def test_a_write_that_fails_in_a_batch_fails_alone(store: Store) -> None:
    await put(store, "old text", "refused")
    forbid(store, "refused")
    writes = [write_of(f"text of {uri}", {"uri": uri}) for uri in ("a", "refused", "b")]
    first, failed, last = await store.write(writes, EMBEDDER)
    assert isinstance(first, Injected)
    assert isinstance(last, Injected)
    assert str(failed) == "The document refused could not be stored: the trigger says no."
    assert [entry.uri for entry in await store.journal.entries(10)] == ["b", "a", "refused"]
    assert (await store.documents.read("refused"))[1] == "old text"
    assert await store.passages.holding(["old text"], []) == {1}
    assert len(await store.passages.holding(["text"], [])) == 3


def forbid(store: Store, uri: str) -> None:
    """Make every write of a document with this uri fail within SQLite, the last of its statements first."""
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute(
            "CREATE TRIGGER forbid BEFORE INSERT ON embeddings WHEN"
            " (SELECT uri FROM documents JOIN chunks ON document = number WHERE chunk_id = new.chunk_id)"
            f" = '{uri}' BEGIN SELECT RAISE(ABORT, 'the trigger says no'); END"
        )


@SQLITE_ONLY
async def test_what_concerns_the_whole_file_fails_the_batch_as_a_whole(store: Store) -> None:
    await put(store, "one")
    assert isinstance(store.engine, SqliteEngine)
    assert store.engine._writer is not None
    await store.engine._writer.execute("PRAGMA max_page_count = 1")  # as many as there are: the disk is full
    with pytest.raises(MemoryFull):
        await store.write([write_of("two " * 10_000, {"uri": uri}) for uri in "abc"], EMBEDDER)
    await store.engine._writer.execute("PRAGMA max_page_count = 1000000")
    assert await put(store, "two") is not None


@SQLITE_ONLY
async def test_a_uri_with_a_nul_of_an_earlier_release_is_listed_updated_and_removed(store: Store) -> None:
    def write(text: str) -> Write:
        chunks = [Chunk(0, len(text), 1, 1, "")]
        return Write(complete(text, {"uri": "a\0b"}), ORIGIN, chunks, [b"\0" * 4])

    await store.write([write("one")], EMBEDDER)
    assert [document.uri for document in (await store.documents.page(10, 0, {"uri": "*"}))[0]] == ["a\0b"]
    [updated] = await store.write([write("two")], EMBEDDER)
    assert isinstance(updated, Injected)
    assert updated.status == "updated"
    assert await store.remove({"a\0b": None}, ORIGIN)
    assert (await store.stats()).documents == 0


async def test_a_cancelled_write_is_whole_or_not_at_all(store: Store) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.write, [write_of("x" * 2000, {"uri": "a"})], EMBEDDER)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert status(await put(store, "next", "b")) == "added"
    assert len(await store.journal.entries(10)) == (await store.stats()).documents
