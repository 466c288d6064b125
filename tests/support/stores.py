"""Open stores to test with, and writes to them."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from ragcommon.contract.documents import Injected
from ragconfig.machine import machine_name
from ragmemory.stores.postgres.connection import numbered
from ragmemory.stores.postgres.database import PostgresEngine, without_schema
from ragmemory.stores.sqlite.file import SqliteEngine
from ragmemory.stores.store import Store
from tests.support import memories
from tests.support.memories import EMBEDDER, settings_for, write_of

# For a module whose tests run in both engines: `store_at`, `opened` and `service_for` use that of the test.
BOTH_ENGINES = pytest.mark.usefixtures("_engine")
# For a test that is about the file itself, or about a repository, whose memory is a file.
SQLITE_ONLY = pytest.mark.parametrize("_engine", ["sqlite"], indirect=True)


def store_at(
    path: Path,
    busy_seconds: float = 5,
    undo_depth: int = 100,
    *,
    read_only: bool = False,
    make: Callable[[], object] = lambda: None,
) -> Store:
    """A store at `memories.place_of(path)` that is not open yet."""
    if memories.database:
        machine = machine_name(settings_for(path.parent).home)
        url = memories.place_of(path)
        return Store(
            PostgresEngine(url, path, busy_seconds, machine=machine, read_only=read_only), undo_depth
        )
    return Store(SqliteEngine(path, busy_seconds, read_only=read_only, make=make), undo_depth)


@asynccontextmanager
async def opened(path: Path, busy_seconds: float = 5, undo_depth: int = 100) -> AsyncIterator[Store]:
    store = store_at(path, busy_seconds, undo_depth)
    await store.engine.ensure_open()
    try:
        yield store
    finally:
        await store.engine.close()


def sql(path: Path, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Execute a statement in the memory at `place_of(path)`, as another program may; its rows."""
    if not memories.database:
        with closing(sqlite3.connect(path)) as connection, connection:
            return connection.execute(statement, parameters).fetchall()
    import psycopg

    conninfo, schema = without_schema(memories.place_of(path))
    with psycopg.connect(conninfo, options=f"-c search_path={schema}") as database:
        cursor = psycopg.RawCursor(database).execute(numbered(statement), parameters)
        return cursor.fetchall() if cursor.description else []


async def put(store: Store, text: str, uri: str = "doc", **metadata: object) -> Injected | None:
    [outcome] = await store.write([write_of(text, {"uri": uri, **metadata})], EMBEDDER)
    assert not isinstance(outcome, Exception)
    return outcome


def status(outcome: Injected | None) -> str:
    assert outcome is not None
    return outcome.status
