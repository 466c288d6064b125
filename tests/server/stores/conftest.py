"""A store for the tests of its parts, in each engine; modules that need another one replace the fixture."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ragmemory.stores.postgres.database import PostgresEngine
from ragmemory.stores.store import Store
from tests.support.postgres import postgres
from tests.support.stores import opened


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    with postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.full)])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "sqlite":
        async with opened(tmp_path / "memory.db") as store:
            yield store
        return
    url = f"{request.getfixturevalue('database')}&schema=test_{secrets.token_hex(6)}"
    engine = PostgresEngine(url, tmp_path / "memory.db", 5)
    await engine.ensure_open()
    try:
        yield Store(engine, 100)
    finally:
        await engine.close()
