"""Open stores to test with, and writes to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ragcommon.contract.documents import Injected
from ragmemory.stores.sqlite import Store
from tests.support.memories import EMBEDDER, write_of


@asynccontextmanager
async def opened(path: Path, busy_seconds: float = 5, undo_depth: int = 100) -> AsyncIterator[Store]:
    store = Store(path, busy_seconds, undo_depth)
    await store.ensure_open()
    try:
        yield store
    finally:
        await store.close()


async def put(store: Store, text: str, uri: str = "doc", **metadata: object) -> Injected | None:
    [outcome] = await store.write([write_of(text, {"uri": uri, **metadata})], EMBEDDER)
    assert not isinstance(outcome, Exception)
    return outcome


def status(outcome: Injected | None) -> str:
    assert outcome is not None
    return outcome.status
