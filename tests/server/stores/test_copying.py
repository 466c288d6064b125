"""A memory is copied with everything in it, from each engine to each."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from ragmemory.errors import CopyFailed
from ragmemory.maintenance import copying
from ragmemory.service import MemoryService
from ragmemory.stores.copying import TABLES, Copying
from ragmemory.stores.engine import Engine
from ragmemory.stores.postgres.database import PostgresEngine
from ragmemory.stores.sqlite.file import SqliteEngine
from tests.support.memories import FOX, LONG, ORIGIN, PIE, put, service_for, uris
from tests.support.stores import SQLITE_ONLY

# Columns that an engine has for itself.
DERIVED = {("documents", "properties")}


class _Stopped(Exception):
    pass


async def ignore(*_: object) -> None:
    pass


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.full)])
async def target(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    """Where no memory is yet, in each engine."""
    path = tmp_path / "target" / "memory.db"
    path.parent.mkdir()
    engine: Engine = SqliteEngine(path, 5)
    if request.param == "postgres":
        url = f"{request.getfixturevalue('database')}&schema=test_{secrets.token_hex(6)}"
        engine = PostgresEngine(url, path, 5, machine="desk-1")
    yield engine
    await engine.close()


async def copied(source: Engine, target: Engine) -> Engine:
    """The target, once the source was copied to it."""
    copy = target.unfinished()
    await Copying(source, copy, ignore).run()
    await target.take(copy)
    return target


def is_file(engine: Engine) -> bool:
    return engine.place == str(engine.path)


async def rows(engine: Engine) -> dict[str, list[tuple[object, ...]]]:
    return {
        table.name: [
            tuple(row)
            for row in await engine.read(
                f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {table.columns[0]}"
            )
        ]
        for table in TABLES
    }


async def fill(memory: MemoryService) -> None:
    """Documents that were added, changed, removed and brought back, and one of many pages."""
    for text in (FOX, PIE, FOX + PIE):
        await put(memory, text, uri="notes/fox.md", tags=["animals"])
    await put(memory, PIE, uri="notes/pie.md", pages=3)
    await memory.writer.forget("notes/pie.md", ORIGIN)
    await put(memory, LONG, uri="notes/long.md")


async def test_everything_is_in_the_copy(memory: MemoryService, target: Engine) -> None:
    await fill(memory)
    source = memory._store.engine
    before = await rows(source)
    copy = await copied(source, target)
    assert await rows(copy) == before
    assert (await copy.verify(ignore)).ok
    # It can be written: ids go on after those of the source.
    await copy.close()
    async with service_for(copy.path.parent, url=copy.place) as there:
        [hit] = (await there.search.query("Where does Sentence1234 stand?", 1)).hits
        assert "Sentence1234" in hit.text
        await put(there, "A cat sleeps on the sofa.", uri="notes/cat.md")
        assert (await uris(there, "cat on the sofa"))[0] == "notes/cat.md"
        assert (await there.history.undo(ORIGIN)).entry.uri == "notes/cat.md"


async def test_a_copy_that_was_interrupted_goes_on(memory: MemoryService, target: Engine) -> None:
    await fill(memory)
    source = memory._store.engine
    copy = target.unfinished()

    async def stop(_: float, __: float | None, table: str | None) -> None:
        if table == "embeddings":
            raise _Stopped

    with pytest.raises(_Stopped):
        await Copying(source, copy, stop).run()
    await copy.close()
    assert not await target.exists()
    # Meanwhile the source has changed.
    await put(memory, "A cat sleeps on the sofa.", uri="notes/fox.md")
    await copied(source, target)
    assert await rows(target) == await rows(source)


async def test_what_is_written_during_a_copy_is_in_it(memory: MemoryService, target: Engine) -> None:
    await fill(memory)
    source = memory._store.engine
    written: list[str] = []
    copy = target.unfinished()

    async def write(_: float, __: float | None, table: str | None) -> None:
        # Every pass finds a change, until the source is locked.
        if table == "journal" and len(written) < 4:
            written.append(f"notes/{len(written)}.md")
            await put(memory, f"Cat number {len(written)} sleeps.", uri=written[-1])

    await Copying(source, copy, write).run()
    await target.take(copy)
    assert {row[2] for row in (await rows(target))["documents"]} >= set(written)
    assert await rows(target) == await rows(source)


async def test_files_of_this_machine_stay_of_this_machine(memory: MemoryService, target: Engine) -> None:
    await memory.writer.inject(FOX, {"uri": "file:///notes/fox.md"}, ORIGIN, stamp="1")
    await put(memory, PIE, uri="pie")
    source = memory._store.engine
    await memory._store.sources.change("file:///notes", [])
    await copied(source, target)
    found = await rows(target)
    assert {row[2]: row[-1] for row in found["documents"]} == {
        "file:///notes/fox.md": target.machine,
        "pie": "",
    }
    assert [row[-1] for row in found["sources"]] == [target.machine]


@SQLITE_ONLY
async def test_nul_characters_of_an_old_memory_are_replaced_and_counted(
    memory: MemoryService, target: Engine
) -> None:
    await put(memory, FOX, uri="fox.md")
    await put(memory, PIE, uri="pie.md")
    source = memory._store.engine
    with closing(sqlite3.connect(source.path)) as connection:
        connection.execute("UPDATE chunks SET text = replace(text, 'fox', 'f' || char(0) || 'x')")
        connection.commit()
    copy = target.unfinished()
    copying = Copying(source, copy, ignore)
    await copying.run()
    await target.take(copy)
    texts = [row[5] for row in (await rows(target))["chunks"]]
    assert copying.replaced == 1
    assert sum("f\ufffdx" in str(text) for text in texts) == 1
    assert (await target.verify(ignore)).ok


@pytest.mark.full
async def test_a_schema_that_an_administrator_has_made_is_filled(
    memory: MemoryService, database: str, tmp_path: Path
) -> None:
    await put(memory, FOX, uri="fox.md")
    schema = f"Made-{secrets.token_hex(6)}"
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        await connection.execute(f'CREATE SCHEMA "{schema}"'.encode())
    target = PostgresEngine(f"{database}&schema={schema}", tmp_path / "copy.db", 5)
    assert not await target.exists()
    assert (await rows(await copied(memory._store.engine, target)))["chunks"]
    await target.close()


@pytest.mark.full
async def test_two_processes_do_not_copy_to_the_same_schema_at_once(database: str, tmp_path: Path) -> None:
    url = f"{database}&schema=test_{secrets.token_hex(6)}"
    one, other = (PostgresEngine(url, tmp_path / name, 5) for name in ("one.db", "other.db"))
    async with one.filling():
        with pytest.raises(CopyFailed, match="another process copies to it"):
            async with other.filling():
                pass
    async with other.filling():
        assert not await other.exists()


@pytest.mark.full
async def test_a_copy_right_after_another_does_not_wait_for_the_end_of_its_connection(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = PostgresEngine(f"{database}&schema=test_{secrets.token_hex(6)}", tmp_path / "memory.db", 5)
    opened: list[psycopg.AsyncConnection[object]] = []

    async def stay_open(connection: psycopg.AsyncConnection[object]) -> None:
        opened.append(connection)

    try:
        with monkeypatch.context() as patched:
            patched.setattr(psycopg.AsyncConnection, "close", stay_open)
            with pytest.raises(_Stopped):
                async with target.filling():
                    raise _Stopped
            async with target.filling():
                pass
    finally:
        for connection in opened:
            await connection.close()


@pytest.mark.full
async def test_a_copy_is_made_also_if_its_lock_was_lost(
    memory: MemoryService, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{database}&schema=test_{secrets.token_hex(6)}"
    target = PostgresEngine(url, tmp_path / "target.db", 5, machine="desk-1")
    run = Copying.run

    async def run_and_lose_the_lock(self: Copying) -> None:
        await run(self)
        with psycopg.connect(database, autocommit=True) as connection:
            ended = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            assert ended.fetchall() == [(True,)]

    monkeypatch.setattr(Copying, "run", run_and_lose_the_lock)
    await put(memory, FOX, uri="fox.md")
    assert (await copying._copy(memory._store.engine, target))["documents"] == 1
    assert await target.exists()


async def test_nothing_is_copied_over_something(memory: MemoryService, target: Engine) -> None:
    await put(memory, FOX, uri="fox.md")
    source = memory._store.engine
    await copied(source, target)
    copy = target.unfinished()
    await Copying(source, copy, ignore).run()
    with pytest.raises(CopyFailed, match="it already exists"):
        await target.take(copy)
    await copy.close()
    assert await target.exists()


async def test_every_column_is_copied(memory: MemoryService) -> None:
    await put(memory, FOX)
    engine = memory._store.engine
    for table in TABLES:
        columns = await engine.read(
            "SELECT name FROM pragma_table_info(?)"
            if is_file(engine)
            else "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = current_schema() AND table_name = ?",
            [table.name],
        )
        assert {name for [name] in columns} - {
            column for name, column in DERIVED if name == table.name
        } == set(table.columns)
