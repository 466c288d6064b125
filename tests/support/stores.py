"""Open stores to test with, and writes to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ragcommon.contract.documents import Injected
from ragmemory.stores.sqlite.file import SqliteEngine
from ragmemory.stores.store import Store
from tests.support.memories import EMBEDDER, write_of

# For a test that opens the file itself.
SQLITE_ONLY = pytest.mark.parametrize("memory_url", ["sqlite"], indirect=True)


def store_at(
    path: Path,
    busy_seconds: float = 5,
    undo_depth: int = 100,
    *,
    read_only: bool = False,
    make: Callable[[], object] | None = None,
) -> Store:
    """A store in an SQLite file that is not open yet."""
    return Store(SqliteEngine(path, busy_seconds, read_only=read_only, make=make), undo_depth)


@asynccontextmanager
async def opened(path: Path, busy_seconds: float = 5, undo_depth: int = 100) -> AsyncIterator[Store]:
    store = store_at(path, busy_seconds, undo_depth)
    await store.engine.ensure_open()
    try:
        yield store
    finally:
        await store.engine.close()


async def put(store: Store, text: str, uri: str = "doc", **metadata: object) -> Injected | None:
    [outcome] = await store.write([write_of(text, {"uri": uri, **metadata})], EMBEDDER)
    assert not isinstance(outcome, Exception)
    return outcome


def status(outcome: Injected | None) -> str:
    assert outcome is not None
    return outcome.status
