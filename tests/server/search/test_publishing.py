"""A machine publishes its index in the database, and another one begins with it.

Covers `ragmemory.stores.published`.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ragmemory.search.index.folder import FORMAT, IndexFolder
from ragmemory.search.publishing import SharedIndex
from ragmemory.service import MemoryService
from ragmemory.stores.leases import LeaseStore
from ragmemory.stores.published import LEASE, PublishedStore
from tests.support.memories import LONG, PIE, put, service_for

pytestmark = pytest.mark.full
QUESTION = "Where does Sentence1234 stand?"
# LONG has 1,500 chunks.
WORTHWHILE = 1_000


@pytest.fixture
def url(database: str) -> str:
    return f"{database}&schema=test_{secrets.token_hex(6)}"


@asynccontextmanager
async def machine(folder: Path, url: str) -> AsyncIterator[tuple[MemoryService, SharedIndex, IndexFolder]]:
    """A memory with a home of its own, and its index."""
    async with service_for(folder, url=url) as memory:
        index = IndexFolder(memory._store.path.with_name(f"{memory._store.path.name}-index"))
        yield memory, SharedIndex(memory._store, index, WORTHWHILE), index


async def published(folder: Path, url: str) -> None:
    """A machine writes LONG, and publishes its index."""
    async with machine(folder, url) as (memory, _, _):
        await put(memory, LONG, uri="long")
        await memory.search.query(QUESTION, 8)
    # It was saved at the end.
    async with machine(folder, url) as (_, shared, _):
        await shared.publish()


async def test_a_new_machine_begins_with_the_published_index(tmp_path: Path, url: str) -> None:
    await published(tmp_path / "one", url)
    async with machine(tmp_path / "one", url) as (one, _, first), machine(tmp_path / "two", url) as here:
        two, shared, second = here
        await shared.fetch((await two._store.changes.source())[0])
        assert second.read() == first.read() is not None
        await put(two, PIE, uri="pie")
        for question in (QUESTION, "apple pie"):
            assert await two.search.query(question, 8) == await one.search.query(question, 8)


async def test_what_is_not_far_ahead_is_not_copied(tmp_path: Path, url: str) -> None:
    await published(tmp_path / "one", url)
    async with machine(tmp_path / "one", url) as (memory, shared, index):
        before = await PublishedStore(memory._store.engine).find(FORMAT)
        await put(memory, PIE, uri="pie")
        await memory.search.query(QUESTION, 8)
        version = index.version()
        await shared.publish()
        await shared.fetch((await memory._store.changes.source())[0])
        assert await PublishedStore(memory._store.engine).find(FORMAT) == before
        assert index.version() == version


async def test_the_index_of_other_embeddings_is_not_used(tmp_path: Path, url: str) -> None:
    await published(tmp_path / "one", url)
    async with machine(tmp_path / "two", url) as (_, shared, index):
        await shared.fetch("another fingerprint")
        assert index.read() is None


async def test_only_one_process_publishes_at_a_time(tmp_path: Path, url: str) -> None:
    async with machine(tmp_path / "one", url) as (memory, _, _):
        await put(memory, LONG, uri="long")
        await memory.search.query(QUESTION, 8)
    async with machine(tmp_path / "one", url) as (memory, shared, _):
        assert await LeaseStore(memory._store.engine).acquire(LEASE, "another process")
        await shared.publish()
        assert await PublishedStore(memory._store.engine).find(FORMAT) is None
        await LeaseStore(memory._store.engine).release(LEASE, "another process")
        await shared.publish()
        assert await PublishedStore(memory._store.engine).find(FORMAT) is not None


async def test_a_file_that_is_not_whole_is_not_used(tmp_path: Path, url: str) -> None:
    await published(tmp_path / "one", url)
    async with machine(tmp_path / "two", url) as (memory, shared, index):
        async with memory._store.engine.transaction(ordered=False) as connection:
            await connection.execute("DELETE FROM published_files WHERE part = 0")
        await shared.fetch((await memory._store.changes.source())[0])
        assert index.read() is None
        assert (await memory.search.query(QUESTION, 1)).hits
