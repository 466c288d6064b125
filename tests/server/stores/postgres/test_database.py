"""A memory in PostgreSQL: what its engine does beyond the tests of the stores, which run on both engines.

Covers `connection`, `dialect`, `verifying` and `words`.
"""

from __future__ import annotations

import secrets
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcommon.contract.documents import Injected
from ragmemory.errors import (
    DatabaseUnavailable,
    MemoryBusy,
    MemoryReadOnly,
    MemoryTooNew,
    NotAMemory,
    NotStored,
)
from ragmemory.stores.postgres import words
from ragmemory.stores.postgres.connection import numbered
from ragmemory.stores.postgres.database import MIGRATIONS, PostgresEngine, without_schema
from ragmemory.stores.postgres.dialect import regular_expression
from ragmemory.stores.store import Store
from ragmemory.types.changes import Checkpoint
from tests.support.memories import EMBEDDER, write_of
from tests.support.stores import put


@pytest.fixture
def url(database: str) -> str:
    return f"{database}&schema=test_{secrets.token_hex(6)}"


@asynccontextmanager
async def opened(url: str, busy_seconds: float = 5, *, read_only: bool = False) -> AsyncIterator[Store]:
    engine = PostgresEngine(url, Path("memory.db"), busy_seconds, read_only=read_only)
    await engine.ensure_open()
    try:
        yield Store(engine, 100)
    finally:
        await engine.close()


async def test_a_missing_psycopg_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    engine = PostgresEngine("postgresql://localhost/notes", Path("memory.db"), 5)
    with pytest.raises(DatabaseUnavailable, match="psycopg is not installed") as caught:
        await engine.read("SELECT 1")
    assert caught.value.hint == "Install it: pip install 'ragchat[postgres]'"
    await engine.close()


def test_parameters_are_numbered_as_postgresql_wants_them() -> None:
    assert numbered("a = ? AND b = ?") == "a = $1 AND b = $2"
    assert numbered("a = ?1 OR b = ?1 LIMIT ?2") == "a = $1 OR b = $1 LIMIT $2"


def test_the_schema_is_no_part_of_the_address() -> None:
    assert without_schema("postgresql://h/d?schema=team&sslmode=require") == (
        "postgresql://h/d?sslmode=require",
        "team",
    )
    assert without_schema("postgresql://h/d") == ("postgresql://h/d", "ragmemory")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://",
        "postgresql:///notes",
        "postgresql:///notes?host=%2Frun%2Fpostgresql",
        "postgresql://h/d?options=-c%20geqo%3Doff",
    ],
)
def test_an_address_without_a_host_and_a_space_in_a_parameter_reach_libpq(url: str) -> None:
    assert without_schema(url) == (url, "ragmemory")
    name = f"{url}{'&' if '?' in url else '?'}schema=team"
    assert without_schema(name) == (url, "team")


def test_words_are_those_that_full_text_search_of_sqlite_finds() -> None:
    assert words.words("Café, foo_bar/baz.sh 日本 Ёлка naïve-x2") == [
        *("cafe", "foo", "bar", "baz", "sh", "日", "本", "елка", "naive", "x2"),
    ]
    assert words.vector("One", "", "one two") == "'one':1A,22C 'two':23C"
    assert words.query(["big fox"], ["qu"]) == "('big' <-> 'fox') & ('qu':*)"
    assert words.query(["fox"], [], in_headings=True) == "('fox':B)"
    assert words.query(["!?"], ["qu"]) == ""  # it matches nothing


@pytest.mark.full
@given(
    st.text("ab/*?[]^-!.\\\n", max_size=12),
    st.text("ab/*?[]^-!.\\\n", max_size=8),
)
def test_a_glob_matches_what_sqlite_matches(database: str, pattern: str, text: str) -> None:
    import psycopg

    [expected] = sqlite3.connect(":memory:").execute("SELECT ? GLOB ?", [text, pattern]).fetchone()
    with psycopg.connect(without_schema(database)[0]) as connection:
        found = connection.execute("SELECT %s ~ %s", [text, regular_expression(pattern)]).fetchone()
    assert found == (bool(expected),)


@pytest.mark.full
async def test_many_processes_may_open_a_new_memory_at_once(url: str) -> None:
    async def open_one() -> None:
        async with opened(url) as store:
            assert (await store.stats()).documents == 0

    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(open_one)


@pytest.mark.full
async def test_what_an_earlier_release_has_stored_is_of_no_machine(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = "INSERT INTO ingestions(job_id, request, status, run_id, beat, job) VALUES(?, '', ?, '', 0, '')"
    with monkeypatch.context() as patch:
        patch.setattr("ragmemory.stores.postgres.database.MIGRATIONS", MIGRATIONS[:1])
        async with opened(url) as store, store.engine.transaction() as connection:
            await connection.execute("INSERT INTO sources(uri, added_at) VALUES('file:///notes', 'then')")
            await connection.execute(insert, ["ended", "completed"])
            await connection.execute(insert, ["killed", "running"])
    async with opened(url) as store:
        [source] = await store.sources.listed()
        assert (source.uri, source.machine) == ("file:///notes", "")
        assert await store.engine.read("SELECT job_id, machine FROM ingestions") == [("ended", "")]


async def test_a_word_that_no_chunk_holds_is_not_searched_for_in_all_of_them(url: str) -> None:
    scans = "SELECT pg_stat_get_xact_numscans(CAST('fulltext' AS regclass))"
    async with opened(url) as store:
        await put(store, "tea and leaves", "tea.md")
        dialect = store.engine.dialect
        async with store.engine.transaction() as connection:
            before = await connection.execute_fetchall(scans)
            for word, held in (("tea", 1), ("coffee", 0)):
                sought = [dialect.fulltext_query([word]), 1]
                assert len(await connection.execute_fetchall(dialect.holding_some, sought)) == held
            assert await connection.execute_fetchall(scans) == before


@pytest.mark.full
async def test_a_follower_sees_every_chunk_of_many_writers_in_order(url: str) -> None:
    seen: list[int] = []
    is_done = anyio.Event()

    async def follow() -> None:
        async with opened(url) as store:
            checkpoint = Checkpoint()
            while True:
                was_done = is_done.is_set()
                changes = await store.changes.since(checkpoint, 7)
                seen.extend(changes.chunk_ids)
                checkpoint = changes.checkpoint
                if was_done and not changes.chunk_ids:
                    return

    async def write(writer: int) -> None:
        async with opened(url) as store:
            for number in range(20):
                await put(store, f"text {writer} {number}", f"doc-{writer}-{number}")

    async with opened(url), anyio.create_task_group() as group:
        group.start_soon(follow)
        async with anyio.create_task_group() as writers:
            for writer in range(4):
                writers.start_soon(write, writer)
        is_done.set()
    assert seen == list(range(1, 81))


@pytest.mark.full
async def test_a_lost_connection_fails_one_use_at_most(url: str) -> None:
    async with opened(url) as store:
        await put(store, "one")
        version = await store.engine.version()
        async with store.engine.reading() as connection:
            with pytest.raises(Exception, match=r"terminat|closed"):
                await connection.execute_fetchall("SELECT pg_terminate_backend(pg_backend_pid())")
        assert (await store.stats()).documents == 1
        assert (await store.engine.version())[1] == version[1]
        assert await put(store, "two") is not None


@pytest.mark.full
async def test_a_cancelled_read_leaves_a_memory_that_answers(url: str) -> None:
    async with opened(url) as store:
        await put(store, "one")
        with anyio.move_on_after(0.05) as scope:
            await store.engine.read("SELECT pg_sleep(20)")
        assert scope.cancelled_caught
        assert (await store.stats()).documents == 1


@pytest.mark.full
async def test_a_write_waits_for_another_only_as_long_as_it_may(url: str) -> None:
    async with opened(url) as one, opened(url, busy_seconds=0.2) as other, one.engine.transaction():
        with pytest.raises(MemoryBusy, match=r"over 0\.2 s"):
            await put(other, "two")


@pytest.mark.full
async def test_waiting_for_another_write_can_be_cancelled(url: str) -> None:
    async with opened(url) as one, opened(url, busy_seconds=30) as other:
        async with one.engine.transaction():
            with anyio.fail_after(5), anyio.move_on_after(0.1) as scope:
                await put(other, "two")
        assert scope.cancelled_caught
        assert await put(other, "two") is not None


@pytest.mark.full
async def test_a_long_document_of_a_host_whose_clock_is_behind_is_not_swept_by_another(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Behind(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) - timedelta(hours=2)

    write = write_of("text", {"uri": "doc"})
    async with opened(url) as store:
        with monkeypatch.context() as host:
            host.setattr("ragmemory.stores.hidden.datetime", Behind)
            staged = await store.hidden.begin(write.document)
        assert not await store.hidden.sweep()
        added = store.hidden.add(
            staged, write.document, write.chunks or [], write.embeddings, [], EMBEDDER[0]
        )
        assert await added is not None


@pytest.mark.full
async def test_a_schema_may_have_any_name(database: str) -> None:
    async with opened(f'{database}&schema=a"b; DROP {secrets.token_hex(4)}') as store:
        await put(store, "one")
        assert (await store.stats()).documents == 1


@pytest.mark.full
async def test_a_process_of_an_earlier_release_writes_nothing_once_the_tables_have_changed(url: str) -> None:
    async with opened(url) as store:
        await put(store, "one")
        await store.engine.read("UPDATE memory SET migrations = migrations + 1 RETURNING 1")
        with pytest.raises(MemoryTooNew):
            await put(store, "two")
        assert (await store.stats()).documents == 1


@pytest.mark.full
async def test_tables_that_were_dropped_are_called_gone(database: str) -> None:
    schema = f"test_{secrets.token_hex(6)}"
    async with opened(f"{database}&schema={schema}") as store:
        await put(store, "one")
        async with store.engine.transaction() as connection:
            await connection.execute(f"DROP SCHEMA {schema} CASCADE")
        for use in (store.stats(), put(store, "two")):
            with pytest.raises(DatabaseUnavailable, match="its tables are gone: relation") as caught:
                await use
            assert "backup" in caught.value.hint


@pytest.mark.full
@pytest.mark.parametrize("schema", ["pg_notes", "ä" * 32])
async def test_a_name_that_no_schema_can_have_is_refused_before_anything_is_copied(
    database: str, schema: str
) -> None:
    engine = PostgresEngine(f"{database}&schema={schema}", Path("memory.db"), 5)
    for use in (engine.exists, engine.ensure_open):
        with pytest.raises(DatabaseUnavailable, match=f"no schema with the name {schema}") as caught:
            await use()
        assert "at most 63 bytes" in caught.value.hint


@pytest.mark.full
async def test_a_memory_of_a_later_release_is_refused(url: str) -> None:
    async with opened(url) as store, store.engine.transaction() as connection:
        await connection.execute("UPDATE memory SET migrations = 99")
    with pytest.raises(MemoryTooNew, match="has version 99"):
        async with opened(url):
            pass


async def test_a_user_without_rights_on_the_schema_is_told_so(url: str) -> None:
    import psycopg

    async with opened(url):
        pass
    conninfo, schema = without_schema(url)
    role = f"reader_{secrets.token_hex(6)}"
    async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
        await connection.execute(f"CREATE ROLE {role} LOGIN")
        try:
            for grant, denied in (
                ("SELECT 1", f"schema {schema}"),
                (f"GRANT USAGE ON SCHEMA {schema} TO {role}", "table memory"),
            ):
                await connection.execute(grant)
                with pytest.raises(DatabaseUnavailable, match=f"permission denied for {denied}") as caught:
                    async with opened(url.replace("//postgres@", f"//{role}@")):
                        pass
                assert caught.value.hint.startswith("Grant the user of store.url the rights on the schema")
        finally:
            await connection.execute(f"DROP OWNED BY {role}")
            await connection.execute(f"DROP ROLE {role}")


async def test_the_owner_of_an_empty_schema_needs_no_rights_on_the_database(url: str) -> None:
    import psycopg

    conninfo, schema = without_schema(url)
    role = f"owner_{secrets.token_hex(6)}"
    async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
        await connection.execute(f"CREATE ROLE {role} LOGIN")
        try:
            with pytest.raises(DatabaseUnavailable, match="permission denied for database") as caught:
                async with opened(url.replace("//postgres@", f"//{role}@")):
                    pass
            assert "CREATE on the database" in caught.value.hint
            await connection.execute(f"CREATE SCHEMA {schema} AUTHORIZATION {role}")
            async with opened(url.replace("//postgres@", f"//{role}@")):
                pass
        finally:
            await connection.execute(f"DROP OWNED BY {role}")
            await connection.execute(f"DROP ROLE {role}")


@pytest.mark.full
async def test_the_tables_of_another_program_are_left_alone(database: str) -> None:
    import psycopg

    schema = f"test_{secrets.token_hex(6)}"
    async with await psycopg.AsyncConnection.connect(without_schema(database)[0]) as connection:
        await connection.execute(f"CREATE SCHEMA {schema}")
        await connection.execute(f"CREATE TABLE {schema}.theirs(n INTEGER)")
    with pytest.raises(NotAMemory, match="tables of another program"):
        async with opened(f"{database}&schema={schema}"):
            pass


@pytest.mark.full
async def test_a_memory_that_is_only_read_is_not_written(url: str) -> None:
    with pytest.raises(MemoryReadOnly, match="have to be made") as caught:
        async with opened(url, read_only=True):
            pass
    assert "without read_only" in caught.value.hint
    async with opened(url) as store:
        await put(store, "one")
    async with opened(url, read_only=True) as store:
        assert (await store.stats()).documents == 1
        with pytest.raises(MemoryReadOnly):
            await put(store, "two")


async def test_an_unreachable_server_is_reported_with_the_reason() -> None:
    with pytest.raises(DatabaseUnavailable, match=r"is not available: .*refused"):
        async with opened("postgresql://me@127.0.0.1:1/notes", busy_seconds=1):
            pass


@pytest.mark.full
async def test_what_is_damaged_is_found(url: str) -> None:
    async def ignore(*_: object) -> None:
        pass

    async with opened(url) as store:
        await put(store, "one")
        await put(store, "two", "other")
        assert (await store.engine.verify(ignore)).ok
        async with store.engine.transaction() as connection:
            await connection.execute("UPDATE chunks SET text = 'changed' WHERE chunk_id = 1")
            await connection.execute("DELETE FROM fulltext WHERE rowid = 2")
            await connection.execute("UPDATE embeddings SET vector = '' WHERE chunk_id = 2")
        problems = (await store.engine.verify(ignore)).problems
    assert [problem.partition(" ")[0] for problem in problems] == ["The", "1", "1"]
    assert "The document doc is damaged." in problems[0]


async def test_a_document_whose_uri_is_too_long_for_an_index_is_refused_alone(url: str) -> None:
    uris = "first", secrets.token_hex(2_000), "last"
    writes = [write_of("text", {"uri": uri}) for uri in uris]
    async with opened(url) as store:
        first, refused, last = await store.write(writes, EMBEDDER)
    assert isinstance(first, Injected)
    assert isinstance(last, Injected)
    assert isinstance(refused, NotStored)
    assert refused.reason == "its uri has 4,000 bytes, and PostgreSQL takes 2,600"
