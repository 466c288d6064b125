"""Long documents in the store: written and removed page by page, and hidden meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from ragcommon.contract.documents import Injected
from ragmemory.errors import DocumentNotFound, EmbedderMismatch
from ragmemory.stores.filters import compile_filter
from ragmemory.stores.reembedding import New
from ragmemory.stores.sqlite.file import SqliteEngine
from ragmemory.stores.store import Store
from ragmemory.stores.writing import PAGE
from ragmemory.types.changes import Checkpoint
from ragmemory.types.writes import StagedDocument, Write
from tests.support.memories import EMBEDDER, ORIGIN, before_last_write, write_of
from tests.support.stores import BOTH_ENGINES, SQLITE_ONLY, opened, sql, store_at

pytestmark = BOTH_ENGINES

OLD = "".join(f"{number:019} " for number in range(3 * PAGE))
NEW = "".join(f"{number:019};" for number in range(2 * PAGE))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = store_at(tmp_path / "memory.db", 5, 100)
    await store.engine.ensure_open()
    yield store
    await store.engine.close()


async def staged(store: Store, text: str, uri: str = "doc") -> Write:
    """All chunks in the store, a page in each transaction, but hidden."""
    write = write_of(text, {"uri": uri})
    assert write.chunks is not None
    one = await store.hidden.begin(write.document)
    for start in range(0, len(write.chunks), PAGE):
        part = write.chunks[start : start + PAGE]
        added = await store.hidden.add(
            one, write.document, part, write.embeddings[: len(part)], [], EMBEDDER[0]
        )
        assert added is not None
        one = added
    return replace(write, chunks=None, embeddings=[], staged=one)


async def put(store: Store, write: Write) -> Injected:
    [outcome] = await store.write([write], EMBEDDER)
    assert isinstance(outcome, Injected)
    return outcome


async def put_long(store: Store, text: str, uri: str = "doc") -> Injected:
    return await put(store, await staged(store, text, uri))


async def hidden(store: Store) -> list[tuple[int, int]]:
    return (await store.changes.since(Checkpoint(), 0)).hidden


async def sweep(store: Store) -> int:
    rounds = 0
    while await store.hidden.sweep():
        rounds += 1
    return rounds


def rows(store: Store, statement: str) -> list[tuple[object, ...]]:
    return sql(store.path, statement)


def counts(store: Store) -> tuple[object, ...]:
    """How many documents, chunks and embeddings there are, hidden ones as well."""
    return rows(
        store,
        "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks),"
        " (SELECT count(*) FROM embeddings)",
    )[0]


async def text_of(store: Store, uri: str = "doc") -> str:
    return (await store.documents.read(uri))[1]


async def test_no_reader_sees_a_document_before_its_last_transaction(store: Store) -> None:
    write = await staged(store, OLD)
    changes = await store.changes.since(Checkpoint(), 10_000)
    assert len(changes.chunk_ids) == 3 * PAGE
    assert await store.documents.page(10, 0, {"uri": "*"}) == ([], 0)
    assert await store.documents.ids("") == []
    assert await store.find(["doc"]) == {}
    [(name,)] = rows(store, "SELECT uri FROM documents")
    with pytest.raises(DocumentNotFound):
        await store.documents.find(str(name))
    assert await store.find([str(name)]) == {}
    assert await store.passages.allowed(compile_filter({"uri": "*"}, store.engine.dialect)) == []
    assert await store.passages.hits(dict.fromkeys(changes.chunk_ids, 1.0)) == ([], None)
    stats = await store.stats()
    assert (stats.documents, stats.chunks, stats.characters) == (0, 0, 0)
    assert await hidden(store) == [(1, PAGE), (PAGE + 1, 2 * PAGE), (2 * PAGE + 1, 3 * PAGE)]

    assert (await put(store, write)).chunks == 3 * PAGE
    assert await hidden(store) == []
    assert await text_of(store) == OLD
    assert (await store.stats()).chunks == 3 * PAGE
    assert (
        await store.passages.allowed(compile_filter({"uri": "*"}, store.engine.dialect)) == changes.chunk_ids
    )


@pytest.mark.parametrize("first", ["long", "short"])
async def test_a_new_version_takes_the_place_of_the_old_one_in_one_transaction(
    store: Store, first: str
) -> None:
    old, new = (OLD, NEW) if first == "long" else ("short", OLD)
    await (put_long(store, old) if first == "long" else put(store, write_of(old, {"uri": "doc"})))
    added_at = (await store.documents.find("doc")).added_at
    assert (await put_long(store, new)).status == "updated"
    info = await store.documents.find("doc")
    assert (await text_of(store), info.added_at) == (new, added_at)
    assert (await store.stats()).documents == 1
    assert [entry.action for entry in await store.journal.entries(10)] == ["updated", "added"]
    assert (await before_last_write(store)).text == old


async def test_a_short_version_takes_the_place_of_a_long_one(store: Store) -> None:
    await put_long(store, OLD)
    assert (await put(store, write_of("short", {"uri": "doc"}))).status == "updated"
    assert await text_of(store) == "short"
    assert len(await hidden(store)) == 3
    await sweep(store)
    assert await hidden(store) == []
    assert (await before_last_write(store)).text == OLD


async def test_a_removed_long_document_keeps_its_text_alone_for_undo(store: Store) -> None:
    await put_long(store, OLD)
    await store.remove({"doc": None}, ORIGIN)
    assert (await store.stats()).documents == 0
    assert await sweep(store) == 3  # a page in each transaction
    assert counts(store) == (1, 3 * PAGE, 0)
    assert (await store.changes.since(Checkpoint(), 10)).removed == list(range(1, 3 * PAGE + 1))
    assert (await before_last_write(store)).text == OLD


async def test_a_text_that_undo_reaches_no_more_is_removed_page_by_page(tmp_path: Path) -> None:
    store = store_at(tmp_path / "m.db", 5, undo_depth=1)
    await store.engine.ensure_open()
    await put_long(store, OLD)
    await store.remove({"doc": None}, ORIGIN)
    await sweep(store)
    await put(store, write_of("other", {"uri": "other"}))
    assert counts(store) == (2, 3 * PAGE + 1, 1)
    assert await sweep(store) == 4
    assert counts(store) == (1, 1, 1)
    if isinstance(store.engine, SqliteEngine):
        sql(store.path, "INSERT INTO fulltext(fulltext) VALUES('integrity-check')")
    await store.engine.close()


async def test_new_metadata_of_a_long_document_copies_no_text(store: Store) -> None:
    write = await staged(store, OLD)
    await put(store, write)
    other = write_of(OLD, {"uri": "doc", "year": 1})
    assert (await put(store, replace(other, chunks=None, embeddings=[]))).chunks == 3 * PAGE
    assert rows(store, "SELECT max(length(before_text)) FROM journal") == [(0,)]
    await put_long(store, NEW)
    await sweep(store)
    # Both lines of the journal need the same hidden document.
    assert [text for (text,) in rows(store, "SELECT before_document FROM journal")] == [None, 1, 1]
    assert counts(store) == (2, 5 * PAGE, 2 * PAGE)


async def test_an_abandoned_document_is_swept_and_a_visible_one_cannot_be_abandoned(store: Store) -> None:
    write = await staged(store, OLD)
    assert write.staged is not None
    await store.hidden.abandon(write.staged)
    assert await store.hidden.add(write.staged, write.document, [], [], [], EMBEDDER[0]) is None
    assert await store.write([write], EMBEDDER) == [None]
    await sweep(store)
    assert counts(store) == (0, 0, 0)

    write = await staged(store, NEW)
    await put(store, write)
    assert write.staged is not None
    await store.hidden.abandon(write.staged)
    assert await sweep(store) == 0
    assert await text_of(store) == NEW


async def test_what_a_killed_process_left_is_swept_after_an_hour_and_no_sooner(tmp_path: Path) -> None:
    killed, store = store_at(tmp_path / "m.db", 5, 100), store_at(tmp_path / "m.db", 5, 100)
    await killed.engine.ensure_open()
    await store.engine.ensure_open()
    write = await staged(killed, OLD)
    assert await sweep(store) == 0
    assert await store.documents.page(10, 0, {"uri": "*"}) == ([], 0)
    sql(store.path, "UPDATE documents SET updated_at = '2020-01-01T00:00:00.000+00:00'")
    await sweep(store)
    assert counts(store) == (0, 0, 0)
    # It was only asleep: it notices, and begins again.
    assert isinstance(write.staged, StagedDocument)
    assert await killed.hidden.add(write.staged, write.document, [], [], [], EMBEDDER[0]) is None
    await killed.engine.close()
    await store.engine.close()


async def test_pages_of_two_embedders_are_not_mixed(store: Store) -> None:
    write = write_of(NEW, {"uri": "doc"})
    one = await store.hidden.begin(write.document)
    assert write.chunks is not None
    page = write.chunks[:PAGE], write.embeddings[:PAGE]
    assert await store.hidden.add(one, write.document, *page, [], EMBEDDER[0])
    with pytest.raises(EmbedderMismatch):
        await store.hidden.add(one, write.document, *page, [], "other")


async def test_reembedding_passes_over_the_texts_that_are_kept_for_undo(store: Store) -> None:
    await put(store, write_of("other", {"uri": "other"}))
    await put_long(store, OLD)
    await store.remove({"doc": None}, ORIGIN)
    await sweep(store)
    await store.reembedding.begin("new")
    [chunk] = await store.reembedding.missing(0, 10_000)
    assert chunk.text == "other"
    assert await store.reembedding.collect("new", [New(chunk.chunk_id, b"\1" * 4, None)])
    assert await store.reembedding.switch("new", chunk.chunk_id)
    assert (await store.changes.since(Checkpoint(), 10_000)).embeddings == [b"\1" * 4]


@SQLITE_ONLY
async def test_a_store_restored_from_a_copy_has_not_passed_a_later_checkpoint(
    store: Store, tmp_path: Path
) -> None:
    await put(store, write_of("other", {"uri": "other"}))
    with (
        closing(sqlite3.connect(store.path)) as source,
        closing(sqlite3.connect(tmp_path / "copy.db")) as copy,
    ):
        source.backup(copy)
    await staged(store, NEW)
    checkpoint = (await store.changes.since(Checkpoint(), 10_000)).checkpoint
    assert await store.changes.has_passed(checkpoint)
    copied = store_at(tmp_path / "copy.db", 5, 100)
    await copied.engine.ensure_open()
    assert not await copied.changes.has_passed(checkpoint)
    await copied.engine.close()


async def test_a_memory_of_the_first_release_gives_up_its_long_documents_page_by_page(store: Store) -> None:
    # Written in one transaction, as before there were pages.
    await put(store, write_of(OLD, {"uri": "doc"}))
    await put(store, write_of("short", {"uri": "doc"}))
    assert await hidden(store) == [(1, 3 * PAGE)]
    assert await sweep(store) == 3
    assert await hidden(store) == []


async def test_what_an_index_reads_during_a_sweep_is_of_one_moment(store: Store, tmp_path: Path) -> None:
    for number in range(12):
        await put_long(store, OLD, uri=f"doc{number}")
    await store.remove({f"doc{number}": None for number in range(12)}, ORIGIN)
    ids = set(range(1, 36 * PAGE + 1))
    async with opened(tmp_path / "memory.db") as other, anyio.create_task_group() as tasks:
        tasks.start_soon(sweep, other)
        changes = await store.changes.since(Checkpoint(), 0)
        while changes.hidden:
            left_out = {id for first, last in changes.hidden for id in range(first, last + 1)}
            assert left_out | set(changes.removed) == ids
            changes = await store.changes.since(Checkpoint(), 0)


async def test_a_document_is_indexed_by_the_name_of_its_file_also_before_it_is_seen(store: Store) -> None:
    write = await staged(store, OLD, "file:///notes/a%20ledger.md")
    [hidden_title] = {*(await store.changes.since(Checkpoint(), 10_000)).titles}
    await put(store, write)
    [title] = {*(await store.changes.since(Checkpoint(), 10_000)).titles}
    assert hidden_title == title
    assert title.endswith("a ledger")
