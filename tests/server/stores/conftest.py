"""A store for the tests of its parts, in each engine; modules that need another one replace the fixture."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ragmemory.stores.postgres.database import PostgresEngine
from ragmemory.stores.store import Store
from tests.support.stores import opened


@pytest.fixture
async def store(tmp_path: Path, memory_url: str) -> AsyncIterator[Store]:
    if not memory_url:
        async with opened(tmp_path / "memory.db") as store:
            yield store
        return
    engine = PostgresEngine(memory_url, tmp_path / "memory.db", 5)
    await engine.ensure_open()
    try:
        yield Store(engine, 100)
    finally:
        await engine.close()
