"""The store on real SQLite files.

Covers `changes`, `chunks`, `connection`, `file`, `fulltext`, `journal`, `meta`, `reembedding`, `schema`,
`values` and `writing`.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from ragmemory.errors import (
    DocumentNotFound,
    EmbedderMismatch,
    MemoryBusy,
    MemoryDamaged,
    MemoryFull,
    MemoryReadOnly,
    MemoryTooNew,
    MemoryUnusable,
    NotAMemory,
    RagMemoryError,
    UndoConflict,
)
from ragmemory.ingest.documents import complete, document_id
from ragmemory.stores.connection import identity
from ragmemory.stores.filters import compile_filter
from ragmemory.stores.schema import MIGRATIONS
from ragmemory.stores.sqlite import Store
from ragmemory.types import Changes, Checkpoint, Chunk, Injected, Previous, Selection, Write
from tests.support.memories import EMBEDDER, ORIGIN, before_last_write, write_of


@asynccontextmanager
async def opened(path: Path, busy_seconds: float = 5, undo_depth: int = 100) -> AsyncIterator[Store]:
    store = Store(path, busy_seconds, undo_depth)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened(tmp_path / "memory.db") as store:
        yield store


async def put(store: Store, text: str, uri: str = "doc", **metadata: object) -> Injected | None:
    [outcome] = await store.write([write_of(text, {"uri": uri, **metadata})], EMBEDDER)
    assert not isinstance(outcome, Exception)
    return outcome


def status(outcome: Injected | None) -> str:
    assert outcome is not None
    return outcome.status


# The file


async def test_a_new_memory_and_its_companions_are_for_the_owner_only(tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("Windows has no file modes")
    old = os.umask(0)
    try:
        async with opened(tmp_path / "deep" / "memory.db") as store:
            await put(store, "text")
            modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "deep").iterdir()}
    finally:
        os.umask(old)
    assert modes == {"memory.db": 0o600, "memory.db-wal": 0o600, "memory.db-shm": 0o600}
    assert (tmp_path / "deep").stat().st_mode & 0o777 == 0o700


async def test_a_memory_has_the_promised_pragmas(store: Store) -> None:
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


async def test_a_store_keeps_its_identity_when_it_is_opened_again(tmp_path: Path) -> None:
    async with opened(tmp_path / "m.db") as store:
        identity = await store.fingerprint()
    async with opened(tmp_path / "m.db") as store:
        assert await store.fingerprint() == identity


async def test_many_that_create_one_memory_at_the_same_time_all_get_the_same(tmp_path: Path) -> None:
    identities = set()

    async def create() -> None:
        async with opened(tmp_path / "m.db") as store:
            identities.add(await store.fingerprint())

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(create)
    assert len(identities) == 1


async def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes. " * 100, encoding="utf-8")
    before = path.read_bytes()
    with pytest.raises(NotAMemory, match="not an SQLite database"):
        await Store(path, 5, 100).open()
    assert path.read_bytes() == before


async def test_the_database_of_another_program_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks(url)")
    before = path.read_bytes()
    with pytest.raises(NotAMemory, match="another program"):
        await Store(path, 5, 100).open()
    assert path.read_bytes() == before


async def test_a_memory_of_a_later_release_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path / "m.db"):
        pass
    with closing(sqlite3.connect(tmp_path / "m.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(MemoryTooNew) as caught:
        await Store(tmp_path / "m.db", 5, 100).open()
    assert (caught.value.version, caught.value.known) == (99, len(MIGRATIONS))


@pytest.mark.parametrize("place", ["folder", "file/memory.db"])
async def test_a_place_where_no_file_can_be_is_named_in_the_error(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(MemoryUnusable, match=place):
        await Store(tmp_path / place, 5, 100).open()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such FIFOs")
@pytest.mark.parametrize("read_only", [False, True])
async def test_a_fifo_is_no_memory_and_is_not_waited_for(tmp_path: Path, read_only: bool) -> None:
    os.mkfifo(tmp_path / "m.db")
    with pytest.raises(MemoryUnusable, match="it is not a regular file"):
        await Store(tmp_path / "m.db", 5, 100, read_only=read_only).open()


async def test_a_memory_that_is_only_to_be_read_is_not_made_and_is_found_once_it_is_there(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.db"
    reader = Store(path, 5, 100, read_only=True)
    await reader.open()
    try:
        assert ((await reader.stats()).documents, identity(path)) == (0, None)
        with pytest.raises(MemoryReadOnly, match="read_only is set"):
            await put(reader, "one")
        assert not reader.is_replaced()
        async with opened(path) as store:
            await put(store, "one")
            assert reader.is_replaced()
            await reader.reopen()
            assert (await reader.stats()).documents == 1
            await store.write([write_of("two", {"uri": "b"})], EMBEDDER)
            assert (await reader.stats()).documents == 2
    finally:
        await reader.close()


async def test_a_memory_of_an_earlier_release_that_is_only_to_be_read_is_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.db"
    async with opened(path) as store:
        await put(store, "one")
    before = content_of(path)
    later = (*MIGRATIONS, ("ALTER TABLE documents ADD COLUMN later INTEGER NOT NULL DEFAULT 7",))
    for module in ("connection", "file"):
        monkeypatch.setattr(f"ragmemory.stores.{module}.MIGRATIONS", later)
    reader = Store(path, 5, 100, read_only=True)
    await reader.open()
    try:
        assert await reader.text((await reader.document("doc")).document_id) == "one"
        assert await reader._read("SELECT later FROM documents") == [(7,)]
    finally:
        await reader.close()
    assert content_of(path) == before


def content_of(path: Path) -> bytes:
    return path.read_bytes()


async def test_on_a_full_disk_reading_works_and_every_write_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "m.db"
    async with opened(path) as store:
        await put(store, "one")
    with monkeypatch.context() as patch:
        patch.setattr("ragmemory.stores.connection.create_private", full)
        store = Store(path, 5, 100)
        await store.open()
        with pytest.raises(MemoryFull):
            await put(store, "two")
        with pytest.raises(MemoryFull):
            await store.begin_reembedding("new")
        assert (await store.stats()).documents == 1
    try:
        assert status(await put(store, "two")) == "updated"
    finally:
        await store.close()


async def test_a_stored_value_that_cannot_be_decoded_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    async with opened(path) as store:
        await put(store, "one")
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("UPDATE documents SET metadata = '{'")
        with pytest.raises(MemoryDamaged, match="at the metadata of a document"):
            await store.document("doc")
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("UPDATE chunks SET text = CAST(x'ff' AS TEXT)")
        with pytest.raises(MemoryDamaged, match="a stored text is not UTF-8"):
            await store.changes_since(Checkpoint(), 10)


async def test_a_chunk_whose_embedding_is_lost_or_cut_off_is_like_no_text_to_the_vectors(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.db"
    async with opened(path) as store:
        await store.write([write_of("a" * 60, {"uri": "doc"}, size=20)], EMBEDDER)
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("UPDATE embeddings SET vector = x'0102' WHERE chunk_id = 1")
            other.execute("DELETE FROM embeddings WHERE chunk_id = 2")
            other.execute("UPDATE embeddings SET vector = x'01020304' WHERE chunk_id = 3")
        changes = await store.changes_since(Checkpoint(), 10)
    assert changes.embeddings == [bytes(4), bytes(4), b"\1\2\3\4"]


async def test_a_damaged_memory_is_named_so(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    async with opened(path) as store:
        await store.write([write_of("x" * 4000, {"uri": f"u{i}"}) for i in range(50)], EMBEDDER)
    with closing(sqlite3.connect(path)) as db:
        roots = [row[0] for row in db.execute("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0")]
    with path.open("r+b") as file:
        for root in roots:
            file.seek((root - 1) * 4096)
            file.write(b"\xff" * 4096)
    with pytest.raises(MemoryDamaged, match=r"is damaged at .*chunks"):
        async with opened(path) as store:
            await store.stats()


# Writing


async def test_a_document_is_added_then_unchanged_then_updated(store: Store) -> None:
    assert [status(await put(store, text)) for text in ("one", "one", "two")] == [
        "added",
        "unchanged",
        "updated",
    ]
    assert await store.text("doc") == ""
    assert await store.text((await store.document("doc")).document_id) == "two"


async def test_a_document_can_be_written_without_chunks_when_only_its_metadata_is_new(store: Store) -> None:
    await put(store, "text" * 10, year=1)
    before = await store.changes_since(Checkpoint(), 10)
    write = replace(write_of("text" * 10, {"uri": "doc", "year": 2}), chunks=None, embeddings=[])
    [outcome] = await store.write([write], None)
    assert outcome == Injected((await store.document("doc")).document_id, "doc", "updated", 2)
    assert (await store.document("doc")).metadata == {"uri": "doc", "year": 2}
    after = await store.changes_since(Checkpoint(), 10)
    assert (after.chunk_ids, after.removed) == (before.chunk_ids, before.removed)


async def test_a_write_that_needs_chunks_and_has_none_is_handed_back(store: Store) -> None:
    bare = replace(write_of("text", {"uri": "gone"}), chunks=None, embeddings=[])
    assert await store.write([bare, write_of("other", {"uri": "there"})], EMBEDDER) == [
        None,
        Injected((await store.document("there")).document_id, "there", "added", 1),
    ]


async def test_a_new_title_counts_as_a_new_text_because_it_is_indexed(store: Store) -> None:
    await put(store, "text", title="Old")
    checkpoint = (await store.changes_since(Checkpoint(), 10)).checkpoint
    await put(store, "text", title="New")
    changes = await store.changes_since(checkpoint, 10)
    assert (changes.titles, changes.removed) == (["New"], [1])
    assert await store.holding(["old"], []) == set()
    assert await store.holding(["new"], []) == {2}


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
    assert [entry.uri for entry in await store.journal(10)] == ["doc", "doc"]
    [other_size] = await store.write([write_of("two", {"uri": "b"})], (EMBEDDER[0], 3))
    assert isinstance(other_size, EmbedderMismatch)


async def test_a_write_that_fails_in_a_batch_fails_alone(store: Store) -> None:
    await put(store, "old text", "refused")
    forbid(store, "refused")
    writes = [write_of(f"text of {uri}", {"uri": uri}) for uri in ("a", "refused", "b")]
    first, failed, last = await store.write(writes, EMBEDDER)
    assert isinstance(first, Injected)
    assert isinstance(last, Injected)
    assert str(failed) == "The document refused could not be stored: the trigger says no."
    assert [entry.uri for entry in await store.journal(10)] == ["b", "a", "refused"]
    assert await store.text((await store.document("refused")).document_id) == "old text"
    assert await store.holding(["old text"], []) == {1}
    assert len(await store.holding(["text"], [])) == 3


def forbid(store: Store, uri: str) -> None:
    """Make every write of a document with this uri fail within SQLite, the last of its statements first."""
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute(
            "CREATE TRIGGER forbid BEFORE INSERT ON embeddings WHEN"
            " (SELECT uri FROM documents JOIN chunks ON document = number WHERE chunk_id = new.chunk_id)"
            f" = '{uri}' BEGIN SELECT RAISE(ABORT, 'the trigger says no'); END"
        )


async def test_what_concerns_the_whole_file_fails_the_batch_as_a_whole(store: Store) -> None:
    await put(store, "one")
    assert store._writer is not None
    await store._writer.execute("PRAGMA max_page_count = 1")  # as many as there are: the disk is full
    with pytest.raises(MemoryFull):
        await store.write([write_of("two " * 10_000, {"uri": uri}) for uri in "abc"], EMBEDDER)
    await store._writer.execute("PRAGMA max_page_count = 1000000")
    assert await put(store, "two") is not None


async def test_a_uri_with_a_nul_of_an_earlier_release_is_listed_updated_and_removed(store: Store) -> None:
    def write(text: str) -> Write:
        chunks = [Chunk(0, len(text), 1, 1, "")]
        return Write(complete(text, {"uri": "a\0b"}), ORIGIN, chunks, [b"\0" * 4])

    await store.write([write("one")], EMBEDDER)
    assert [document.uri for document in (await store.documents(10, 0, compile_filter({"uri": "*"})))[0]] == [
        "a\0b"
    ]
    [updated] = await store.write([write("two")], EMBEDDER)
    assert isinstance(updated, Injected)
    assert updated.status == "updated"
    assert await store.remove({"a\0b": None}, ORIGIN)
    assert (await store.stats()).documents == 0


async def test_who_holds_the_write_lock_for_too_long_is_reported(tmp_path: Path) -> None:
    async with opened(tmp_path / "m.db", busy_seconds=0.05) as store:
        with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(MemoryBusy):
                await put(store, "one")
            other.execute("ROLLBACK")
        assert status(await put(store, "one")) == "added"


async def test_a_write_that_waits_for_the_lock_of_another_can_be_called_off(tmp_path: Path) -> None:
    async with opened(tmp_path / "m.db", busy_seconds=60) as store:
        with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with anyio.fail_after(20), anyio.move_on_after(0.01):
                await put(store, "one")
            other.execute("ROLLBACK")
        assert (await store.stats()).documents == 0
        assert status(await put(store, "one")) == "added"


async def test_a_cancelled_write_is_whole_or_not_at_all(store: Store) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.write, [write_of("x" * 2000, {"uri": "a"})], EMBEDDER)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert status(await put(store, "next", "b")) == "added"
    assert len(await store.journal(10)) == (await store.stats()).documents


# Another file in its place


@pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no open file")
async def test_uses_of_a_store_wait_while_it_is_reopened(store: Store) -> None:
    async def use_after(turns: int) -> None:
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        await store.stats()
        await put(store, f"after {turns}", f"doc{turns}")

    for turns in range(12):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.reopen)
            tasks.start_soon(use_after, turns)
    assert (await store.stats()).documents == 12


@pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no open file")
async def test_changes_come_from_one_file_even_if_another_takes_its_place(
    tmp_path: Path, store: Store
) -> None:
    await put(store, "one")
    async with opened(tmp_path / "other.db"):
        pass
    changes: list[Changes] = []

    async def follow() -> None:
        changes.append(await store.changes_since(Checkpoint(), 100))

    for turns in range(12):
        (tmp_path / "away.db").unlink(missing_ok=True)
        store.path.rename(tmp_path / "away.db")
        (tmp_path / "other.db").rename(store.path)
        (tmp_path / "away.db").rename(tmp_path / "other.db")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
            tasks.start_soon(store.reopen)
    assert {(len(one.chunk_ids), one.checkpoint.entry) for one in changes} <= {(0, 0), (1, 1)}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no open file")
async def test_uses_fail_at_once_if_the_file_in_its_place_is_no_memory(tmp_path: Path, store: Store) -> None:
    await put(store, "one")
    with closing(sqlite3.connect(store.path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # The file alone will be moved.
    store.path.rename(tmp_path / "away.db")
    store.path.write_text("no database " * 99, encoding="utf-8")
    with anyio.fail_after(20):
        for _ in range(2):
            with pytest.raises(NotAMemory):
                await store.reopen()
            with pytest.raises(MemoryUnusable, match="could not be opened"):
                await store.stats()
            with pytest.raises(MemoryUnusable, match="could not be opened"):
                await put(store, "two")
        (tmp_path / "away.db").replace(store.path)
        await store.reopen()
        assert status(await put(store, "one")) == "unchanged"


# Following


async def test_changes_come_in_pages_and_hold_what_an_index_needs(store: Store) -> None:
    await put(store, "a" * 20 + "b" * 20 + "c" * 5, title="T")
    first = await store.changes_since(Checkpoint(), 2)
    assert (first.chunk_ids, first.titles, first.headings) == ([1, 2], ["T", "T"], ["Heading", "Heading"])
    [entry] = await store.journal(1)
    assert (first.texts, first.checkpoint) == (["a" * 20, "b" * 20], Checkpoint(2, 0, 1, entry.at))
    second = await store.changes_since(first.checkpoint, 2)
    assert (second.chunk_ids, second.checkpoint) == ([3], Checkpoint(3, 0, 1, entry.at))
    assert second.embeddings[0] == b"\0" * 4


async def test_removed_chunks_are_reported_and_their_ids_never_come_back(store: Store) -> None:
    await put(store, "one")
    checkpoint = (await store.changes_since(Checkpoint(), 10)).checkpoint
    await store.remove({"doc": None}, ORIGIN)
    changes = await store.changes_since(checkpoint, 10)
    assert (changes.chunk_ids, changes.removed) == ([], [1])
    assert (changes.checkpoint.chunk_id, changes.checkpoint.removal, changes.checkpoint.entry) == (1, 1, 2)
    await put(store, "again")
    assert (await store.changes_since(changes.checkpoint, 10)).chunk_ids == [2]


async def test_the_version_changes_with_every_commit_of_anybody(tmp_path: Path) -> None:
    async with opened(tmp_path / "m.db") as one, opened(tmp_path / "m.db") as two:
        before = await two.version()
        assert await two.version() == before
        await put(one, "text")
        between = await two.version()
        assert between != before
        await put(two, "other", "b")
        assert await two.version() != between


# Finding


async def test_phrases_are_found_in_any_script_and_hold_no_syntax(store: Store) -> None:
    texts = [
        "the quick brown fox",
        "吾輩は猫である。名前はまだ無い。",
        'say "NEAR(a b)" OR * : -x',
        "naïve café",
    ]
    await store.write([write_of(text, {"uri": text}, size=100) for text in texts], EMBEDDER)
    assert await store.holding(["quick brown"], []) == {1}
    assert await store.holding(["brown quick"], []) == set()
    assert await store.holding(["猫である"], []) == {2}
    assert await store.holding(["NEAR(a b) OR"], []) == {3}
    assert await store.holding(['"', "* :"], []) == set()
    assert await store.holding(["NAIVE cafe"], []) == {4}
    assert await store.holding([], ["qui", "bro"]) == {1}
    assert await store.holding(["heading"], []) == {1, 2, 3, 4}


async def test_hits_keep_the_order_of_the_scores_and_leave_out_removed_chunks(store: Store) -> None:
    await put(store, "one", "a", tags=["x"])
    await put(store, "two", "b")
    hits, damage = await store.hits({2: 0.9, 77: 0.8, 1: 0.5})
    assert damage is None
    assert [(hit.rank, hit.score, hit.chunk_id, hit.text) for hit in hits] == [
        (1, 0.9, 2, "two"),
        (2, 0.5, 1, "one"),
    ]
    assert hits[1].metadata == {"uri": "a", "tags": ["x"]}


async def test_a_hit_that_cannot_be_read_is_left_out_with_a_warning_that_says_what_to_do(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("one", "two", "three"):
        await put(store, name, name)
    with closing(sqlite3.connect(store.path)) as other, other:
        other.execute("UPDATE documents SET metadata = '{' WHERE uri = 'one'")
        other.execute("UPDATE chunks SET text = CAST(x'ff' AS TEXT) WHERE chunk_id = 3")
    hits, damage = await store.hits({1: 0.9, 2: 0.8, 3: 0.7})
    assert [(hit.rank, hit.text) for hit in hits] == [(1, "two")]
    assert isinstance(damage, MemoryDamaged)
    assert "`ragchat memory verify`" in caplog.text
    with pytest.raises(MemoryDamaged):
        await store.hits({1: 0.9, 3: 0.7})


# Looking


async def test_documents_are_listed_by_uri_in_pages(store: Store) -> None:
    await store.write([write_of("text", {"uri": f"file:///{name}"}) for name in "cab"], EMBEDDER)
    page, total = await store.documents(2, 0, compile_filter({"uri": "*"}))
    assert ([info.uri for info in page], total) == (["file:///a", "file:///b"], 3)
    page, total = await store.documents(2, 2, compile_filter({"uri": "*"}))
    assert ([info.uri for info in page], total) == (["file:///c"], 3)
    assert await store.documents(9, 0, compile_filter({"uri": "http*"})) == ([], 0)


async def test_an_id_that_is_the_uri_of_another_document_names_the_document_with_the_id(
    store: Store,
) -> None:
    for uri in map(str, range(5)):
        await put(store, "text", uri)
        await put(store, "text of another", document_id(uri))
        assert (await store.document(document_id(uri))).uri == uri


async def test_a_document_goes_by_its_id_and_by_its_uri(store: Store) -> None:
    await put(store, "text" * 10)
    info = await store.document("doc")
    assert await store.document(info.document_id) == info
    assert (info.chunks, info.characters) == (2, 40)
    with pytest.raises(DocumentNotFound):
        await store.document("nothing")


async def test_stats_count_and_name_the_embedder(store: Store) -> None:
    empty = await store.stats()
    assert (empty.documents, empty.chunks, empty.characters, empty.embedder) == (0, 0, 0, "")
    await put(store, "text" * 10)
    stats = await store.stats()
    assert (stats.documents, stats.chunks, stats.characters) == (1, 2, 40)
    assert (stats.embedder, stats.dimensions) == EMBEDDER
    assert stats.bytes > 4096


# The journal


async def test_every_write_is_in_the_journal_with_its_origin(store: Store) -> None:
    await put(store, "one")
    await put(store, "one")
    await put(store, "two")
    await store.remove({"doc": None}, ORIGIN)
    entries = await store.journal(10)
    assert [(entry.seq, entry.action, entry.uri) for entry in entries] == [
        (3, "removed", "doc"),
        (2, "updated", "doc"),
        (1, "added", "doc"),
    ]
    assert {(entry.origin.client, entry.origin.session) for entry in entries} == {("tests", "session-1")}
    assert entries == sorted(entries, key=lambda entry: entry.at, reverse=True)
    assert len(await store.journal(2)) == 2


async def test_the_journal_keeps_what_undo_needs(store: Store) -> None:
    assert await store.change(Selection()) == ([], [])
    await put(store, "one", year=1)
    [added], _ = await store.change(Selection())
    assert await store.documents_before([added.seq]) == {}
    added_at = (await store.document("doc")).added_at
    await put(store, "two", year=2)
    assert await before_last_write(store) == Previous("one", {"uri": "doc", "year": 1}, added_at)


def kept(store: Store) -> list[str | None]:
    """The texts that the journal keeps, line by line."""
    with closing(sqlite3.connect(store.path)) as connection:
        return [row[0] for row in connection.execute("SELECT before_text FROM journal ORDER BY seq")]


async def test_texts_beyond_the_depth_are_not_kept(tmp_path: Path) -> None:
    async with opened(tmp_path / "m.db", undo_depth=2) as store:
        for text in ("one", "two", "three"):
            await put(store, text)
        await store.remove({"doc": None}, ORIGIN)
        assert kept(store) == [None, None, "two", "three"]
        assert len(await store.journal(10)) == 4


async def test_neither_an_undo_nor_an_undone_write_uses_up_the_depth(tmp_path: Path) -> None:
    async with opened(tmp_path / "m.db", undo_depth=2) as store:
        for text in ("one", "two", "three"):
            await put(store, text)
        for undone in (3, 5, 7):
            undo = replace(write_of("two", {"uri": "doc"}), undoes=undone)
            assert all(isinstance(outcome, Injected) for outcome in await store.write([undo], EMBEDDER))
            assert kept(store) == [None, "one", *[None] * (undone - 1)]
            await put(store, "other text")
        assert kept(store)[1] == "one"


async def test_with_a_depth_of_0_no_text_is_kept(tmp_path: Path) -> None:
    async with opened(tmp_path / "m.db", undo_depth=0) as store:
        await put(store, "a secret")
        await put(store, "another secret")
        await store.remove({"doc": None}, ORIGIN)
        assert kept(store) == [None] * 3


async def test_only_the_last_write_to_a_document_can_be_undone(store: Store) -> None:
    await put(store, "one")
    await put(store, "two")
    await put(store, "other", "other")
    with pytest.raises(UndoConflict):
        await store.remove({"other": 3, "doc": 1}, ORIGIN)
    assert (await store.stats()).documents == 2
    await store.remove({"other": 3}, ORIGIN)
    entries = await store.journal(10)
    assert [(entry.action, entry.undone) for entry in entries] == [
        ("restored", False),
        ("added", True),
        ("updated", False),
        ("added", False),
    ]
    with pytest.raises(UndoConflict):
        await store.remove({"other": 3}, ORIGIN)


async def test_an_undo_that_comes_too_late_fails_alone(store: Store) -> None:
    await put(store, "one")
    await put(store, "two")
    await put(store, "three")
    late = replace(write_of("one", {"uri": "doc"}), undoes=2)
    conflict, added = await store.write([late, write_of("new", {"uri": "new"})], EMBEDDER)
    assert isinstance(conflict, UndoConflict)
    assert isinstance(added, Injected)
    assert [entry.action for entry in await store.journal(10)] == ["added", "updated", "updated", "added"]
    assert await store.text((await store.document("doc")).document_id) == "three"


async def test_undoing_an_addition_that_was_removed_already_succeeds(store: Store) -> None:
    # As an earlier release left it, which took an update whose text was dropped for an addition.
    await put(store, "one")
    await store.remove({"doc": None}, ORIGIN)
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("UPDATE journal SET undone = 1 WHERE seq = 2")
        connection.commit()
    assert await store.remove({"doc": 1}, ORIGIN) == []
    assert await store.change(Selection()) == ([], [])
    with pytest.raises(UndoConflict):
        await store.remove({"doc": 1}, ORIGIN)


async def test_sqlite_errors_never_leave_the_store_as_such(store: Store) -> None:
    with closing(sqlite3.connect(store.path)) as other:
        other.execute("DROP TABLE journal")
    with pytest.raises(RagMemoryError, match="no such table"):
        await store.journal(1)
