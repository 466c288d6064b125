"""SQLite files in WAL mode, with real files and connections that hold each other's locks."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from ragcommon.sqlite import wal

pytestmark = pytest.mark.anyio

FIRST = ("CREATE TABLE notes(text TEXT)",)
SECOND = ("ALTER TABLE notes ADD COLUMN at REAL", "CREATE TABLE tags(name TEXT)")


async def test_only_the_migrations_that_a_file_lacks_are_executed(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    for migrations in ([FIRST], [FIRST, SECOND], [FIRST, SECOND]):
        db = await wal.connect(path, 1.0)
        await wal.prepare(db, migrations, 1.0)
        assert await wal.pragma(db, "user_version") == len(migrations)
        await wal.close(db)
    with closing(sqlite3.connect(path)) as db_now:
        assert db_now.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert [row[1] for row in db_now.execute("PRAGMA table_info(notes)")] == ["text", "at"]


async def test_a_connection_sees_the_tables_that_another_process_has_just_migrated(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    db, other = await wal.connect(path, 1.0), await wal.connect(path, 1.0)
    await wal.prepare(db, [FIRST], 1.0)
    await db.execute("INSERT INTO notes VALUES('a')")  # reads the schema of before
    await wal.prepare(other, [FIRST, SECOND], 1.0)
    await wal.close(other)
    await wal.prepare(db, [FIRST, SECOND], 1.0)
    await db.execute("INSERT INTO notes VALUES('b', 1.0)")
    await wal.close(db)


async def test_what_is_deleted_is_overwritten_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    db = await wal.connect(path, 1.0)
    await wal.prepare(db, [FIRST], 1.0)
    await db.execute("INSERT INTO notes VALUES('a secret'), ('a note')")
    await db.execute("DELETE FROM notes WHERE text = 'a secret'")
    await wal.close(db)
    content = path.read_bytes()
    assert b"a note" in content
    assert b"a secret" not in content


async def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    db = await wal.connect(tmp_path / "a.db", 1.0)
    with pytest.raises(sqlite3.OperationalError):
        await wal.prepare(db, [("CREATE TABLE notes(text TEXT)", "CREATE nonsense")], 1.0)
    assert await wal.pragma(db, "user_version") == 0
    assert await db.execute_fetchall("SELECT * FROM sqlite_schema") == []
    await wal.close(db)


async def test_a_transaction_waits_for_another_process_and_rolls_back_on_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    db = await wal.connect(path, 30.0)
    await wal.prepare(db, [FIRST], 30.0)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            async with wal.transaction(db, 0.0):
                raise AssertionError
        started = anyio.Event()

        async def write() -> None:
            started.set()
            async with wal.transaction(db, 30.0):
                await db.execute("INSERT INTO notes VALUES('a')")
                raise ZeroDivisionError

        async def release() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(write)
                await started.wait()
                other.execute("COMMIT")

        with anyio.fail_after(30), pytest.raises(ExceptionGroup) as caught:
            await release()
        assert caught.group_contains(ZeroDivisionError)
    assert await db.execute_fetchall("SELECT * FROM notes") == []
    await wal.close(db)


async def test_a_read_only_connection_refuses_to_write(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    writer = await wal.connect(path, 1.0)
    await wal.prepare(writer, [FIRST], 1.0)
    reader = await wal.connect(path, 1.0, read_only=True)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await reader.execute("INSERT INTO notes VALUES('a')")
    await wal.close(reader)
    await wal.close(writer)
