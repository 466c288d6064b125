"""The file of the store: how it is created, opened, locked and replaced, and what damage of it means.

Covers `connection`, `schema`, `ragmemory.stores.meta` and `ragmemory.stores.values`.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import sys
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from ragcommon.sqlite.wal import identity
from ragmemory.errors import (
    MemoryBusy,
    MemoryDamaged,
    MemoryFull,
    MemoryReadOnly,
    MemoryTooNew,
    MemoryUnusable,
    NotAMemory,
)
from ragmemory.stores.sqlite.file import SqliteEngine
from ragmemory.stores.sqlite.schema import MIGRATIONS
from ragmemory.stores.store import Store
from ragmemory.types.changes import Checkpoint
from tests.support.memories import EMBEDDER, write_of
from tests.support.stores import SQLITE_ONLY, opened, put, status, store_at


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


@SQLITE_ONLY
async def test_a_memory_has_the_promised_pragmas(store: Store) -> None:
    await put(store, "text")
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


async def test_a_store_keeps_its_identity_when_it_is_opened_again(tmp_path: Path) -> None:
    async with opened(tmp_path / "m.db") as store:
        await put(store, "text")
        identity = (await store.changes.source())[0]
    async with opened(tmp_path / "m.db") as store:
        assert (await store.changes.source())[0] == identity


async def test_many_that_create_one_memory_at_the_same_time_all_get_the_same(tmp_path: Path) -> None:
    identities = set()

    async def create() -> None:
        async with opened(tmp_path / "m.db") as store:
            await put(store, "text")
            identities.add((await store.changes.source())[0])

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(create)
    assert len(identities) == 1


async def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes. " * 100, encoding="utf-8")
    before = path.read_bytes()
    with pytest.raises(NotAMemory, match="not an SQLite database"):
        await store_at(path, 5, 100).engine.ensure_open()
    assert path.read_bytes() == before


async def test_the_database_of_another_program_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks(url)")
    before = path.read_bytes()
    with pytest.raises(NotAMemory, match="another program"):
        await store_at(path, 5, 100).engine.ensure_open()
    assert path.read_bytes() == before


async def test_a_memory_of_a_later_release_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path / "m.db"):
        pass
    with closing(sqlite3.connect(tmp_path / "m.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(MemoryTooNew) as caught:
        await store_at(tmp_path / "m.db", 5, 100).engine.ensure_open()
    assert (caught.value.version, caught.value.known) == (99, len(MIGRATIONS))


@pytest.mark.parametrize("place", ["folder", "file/memory.db"])
async def test_a_place_where_no_file_can_be_is_named_in_the_error(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(MemoryUnusable, match=place):
        await store_at(tmp_path / place, 5, 100).engine.ensure_open()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such FIFOs")
@pytest.mark.parametrize("read_only", [False, True])
async def test_a_fifo_is_no_memory_and_is_not_waited_for(tmp_path: Path, read_only: bool) -> None:
    os.mkfifo(tmp_path / "m.db")
    with pytest.raises(MemoryUnusable, match="it is not a regular file"):
        await store_at(tmp_path / "m.db", 5, 100, read_only=read_only).engine.ensure_open()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such FIFOs")
@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
@pytest.mark.parametrize("read_only", [False, True])
async def test_a_fifo_beside_a_memory_is_not_waited_for(tmp_path: Path, suffix: str, read_only: bool) -> None:
    store = store_at(tmp_path / "m.db", 5, 100)
    await store.engine.ensure_open()
    await store.engine.close()
    os.mkfifo(tmp_path / f"m.db{suffix}")
    with pytest.raises(MemoryUnusable, match=f"its m.db{suffix} is not a regular file"):
        await store_at(tmp_path / "m.db", 5, 100, read_only=read_only).engine.ensure_open()


async def test_a_memory_that_is_only_to_be_read_is_not_made_and_is_found_once_it_is_there(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.db"
    reader = store_at(path, 5, 100, read_only=True)
    await reader.engine.ensure_open()
    try:
        assert ((await reader.stats()).documents, identity(path)) == (0, None)
        with pytest.raises(MemoryReadOnly, match="read_only is set") as caught:
            await put(reader, "one")
        assert caught.value.hint == "Open it without read_only, or name another file."
        assert isinstance(reader.engine, SqliteEngine)
        assert not reader.engine.is_replaced()
        async with opened(path) as store:
            await put(store, "one")
            assert reader.engine.is_replaced()
            await reader.engine.ensure_open()
            assert (await reader.stats()).documents == 1
            await store.write([write_of("two", {"uri": "b"})], EMBEDDER)
            assert (await reader.stats()).documents == 2
    finally:
        await reader.engine.close()


async def test_a_memory_of_an_earlier_release_that_is_only_to_be_read_is_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.db"
    async with opened(path) as store:
        await put(store, "one")
    before = content_of(path)
    later = (*MIGRATIONS, ("ALTER TABLE documents ADD COLUMN later INTEGER NOT NULL DEFAULT 7",))
    for module in ("connection", "file"):
        monkeypatch.setattr(f"ragmemory.stores.sqlite.{module}.MIGRATIONS", later)
    reader = store_at(path, 5, 100, read_only=True)
    await reader.engine.ensure_open()
    try:
        assert (await reader.documents.read("doc"))[1] == "one"
        assert await reader.engine.read("SELECT later FROM documents") == [(7,)]
    finally:
        await reader.engine.close()
    assert content_of(path) == before


async def test_sources_and_jobs_of_an_earlier_release_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.db"
    with monkeypatch.context() as patch:
        for module in ("connection", "file"):
            patch.setattr(f"ragmemory.stores.sqlite.{module}.MIGRATIONS", MIGRATIONS[:14])
        store = store_at(path, 5, 100)
        async with store.engine.transaction() as connection:
            await connection.execute("INSERT INTO sources(uri, added_at) VALUES('file:///notes', 'then')")
        await store.engine.close()
    for read_only in (True, False):
        store = store_at(path, 5, 100, read_only=read_only)
        try:
            [source] = await store.sources.listed()
        finally:
            await store.engine.close()
        assert (source.uri, source.added_at, source.machine) == ("file:///notes", "then", "")
    async with opened(path) as store:
        await store.sources.change("file:///notes", [])
        await store.sources.change("file:///other", [source])
        assert [one.uri for one in await store.sources.listed()] == ["file:///other"]


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
        patch.setattr("ragmemory.stores.sqlite.connection.create_private", full)
        store = store_at(path, 5, 100)
        await store.engine.ensure_open()
        with pytest.raises(MemoryFull):
            await put(store, "two")
        with pytest.raises(MemoryFull):
            await store.reembedding.begin("new")
        assert (await store.stats()).documents == 1
    try:
        assert status(await put(store, "two")) == "updated"
    finally:
        await store.engine.close()


async def test_a_stored_value_that_cannot_be_decoded_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    async with opened(path) as store:
        await put(store, "one")
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("UPDATE documents SET metadata = '{'")
        with pytest.raises(MemoryDamaged, match="at the metadata of a document"):
            await store.documents.find("doc")
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("UPDATE chunks SET text = CAST(x'ff' AS TEXT)")
        with pytest.raises(MemoryDamaged, match="a stored text is not UTF-8"):
            await store.changes.since(Checkpoint(), 10)


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


async def test_a_memory_whose_documents_are_overwritten_is_not_empty_but_damaged(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    async with opened(path) as store:
        await put(store, "one")
    with closing(sqlite3.connect(path)) as db:
        pages = db.execute("SELECT type, rootpage FROM sqlite_schema WHERE tbl_name = 'documents'").fetchall()
    with path.open("r+b") as file:
        for kind, page in pages:
            file.seek((page - 1) * 4096)
            # A page without entries.
            file.write((b"\x0d" if kind == "table" else b"\x0a") + b"\0\0\0\0\x10\0\0")
    async with opened(path) as store:
        with pytest.raises(MemoryDamaged, match="is damaged at the table documents"):
            await store.documents.page(1)


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
        await put(store, "one", "a")
        with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with anyio.fail_after(20), anyio.move_on_after(0.01):
                await put(store, "two", "b")
            other.execute("ROLLBACK")
        assert (await store.stats()).documents == 1
        assert status(await put(store, "two", "b")) == "added"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no open file")
async def test_uses_of_a_store_wait_while_it_is_reopened(store: Store) -> None:
    async def use_after(turns: int) -> None:
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        await store.stats()
        await put(store, f"after {turns}", f"doc{turns}")

    for turns in range(12):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.engine.ensure_open)
            tasks.start_soon(use_after, turns)
    assert (await store.stats()).documents == 12


@pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no open file")
@SQLITE_ONLY
async def test_uses_fail_at_once_while_the_file_in_its_place_is_no_memory(
    tmp_path: Path, store: Store
) -> None:
    await put(store, "one")
    with closing(sqlite3.connect(store.path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # The file alone will be moved.
    store.path.rename(tmp_path / "away.db")
    store.path.write_text("no database " * 99, encoding="utf-8")
    with anyio.fail_after(20):
        for _ in range(2):
            with pytest.raises(NotAMemory):
                await store.stats()
            with pytest.raises(NotAMemory):
                await put(store, "two")
        (tmp_path / "away.db").replace(store.path)
        assert status(await put(store, "one")) == "unchanged"


async def test_stats_count_and_name_the_embedder(store: Store) -> None:
    empty = await store.stats()
    assert (empty.documents, empty.chunks, empty.characters, empty.embedder) == (0, 0, 0, "")
    await put(store, "text" * 10)
    stats = await store.stats()
    assert (stats.documents, stats.chunks, stats.characters) == (1, 2, 40)
    assert (stats.embedder, stats.dimensions) == EMBEDDER
    assert stats.bytes > 4096


@SQLITE_ONLY
async def test_sqlite_errors_never_leave_the_store_as_such(store: Store) -> None:
    await put(store, "text")
    with closing(sqlite3.connect(store.path)) as other:
        other.execute("DROP TABLE journal")
    with pytest.raises(MemoryDamaged, match="no such table"):
        await store.journal.entries(1)


@pytest.mark.parametrize(
    ("table", "word", "damaged"),
    [
        ("journal", b"client", b"klient"),
        ("journal", b"client", b"cl\xfaent"),
        ("fulltext", b"unicode61", b"unicode62"),
        ("embeddings", b"chunk_id", b"chunk_ie"),
    ],
)
async def test_a_damaged_schema_is_damage_to_the_memory_not_to_the_document(
    tmp_path: Path, table: str, word: bytes, damaged: bytes
) -> None:
    path = tmp_path / "m.db"
    async with opened(path) as store:
        await put(store, "a text")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA writable_schema = ON")
        [(sql,)] = db.execute("SELECT CAST(sql AS BLOB) FROM sqlite_schema WHERE name = ?", [table])
        changed = sql.replace(word, damaged)
        db.execute("UPDATE sqlite_schema SET sql = CAST(? AS TEXT) WHERE name = ?", [changed, table])
    async with opened(path) as store:
        for _ in range(2):
            with pytest.raises(MemoryDamaged) as failed:
                await put(store, "another text")
            assert f"The memory {path} is damaged" in str(failed.value)


async def _list_versions(store: Store) -> None:
    assert len(await store.versions.newest("doc", 10_000)) > 3_000


async def _find_code(store: Store) -> None:
    assert await store.code.holding("text", 10**9) == ([], False)


@pytest.mark.parametrize("read_much", [_list_versions, _find_code])
@SQLITE_ONLY
async def test_what_is_committed_during_a_long_reading_is_seen_at_once(
    read_much: Callable[[Store], Coroutine[Any, Any, None]], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragmemory.stores.code._ROWS", 2)
    for number in range(8):
        await put(store, "text " * 1_600, uri=f"long{number}")
    await put(store, "text", uri="doc")
    columns = "at, action, document_id, uri, client, session"
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute(
            f"INSERT INTO journal({columns}) SELECT {columns} FROM journal, json_each(?) WHERE uri = 'doc'",
            [json.dumps([0] * 3_000)],
        )
    async with opened(store.path) as other, anyio.create_task_group() as reading:
        for _ in range(5):
            reading.start_soon(read_much, store)
        for number in range(20):
            await put(other, f"{number} is new", uri=f"new{number}")
            assert (await store.stats()).documents == 10 + number
