"""The follower notices what any process writes: here two memories in one process, on both engines."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import ObjectReceiveStream

from ragmemory import follower
from ragmemory.service import MemoryService
from ragmemory.stores.postgres.database import PostgresEngine
from tests.support.memories import FOX, ORIGIN, PIE, backup_of, put, restore, service_for

Changes = ObjectReceiveStream[tuple[str, str, bool]]


@pytest.fixture
def no_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is noticed because a second has passed."""
    monkeypatch.setattr(follower, "_POLL_SECONDS", 600.0)


@asynccontextmanager
async def following(folder: Path, url: str) -> AsyncIterator[tuple[MemoryService, Changes]]:
    """A memory with a subscriber, and the changes it is notified of."""
    send, receive = anyio.create_memory_object_stream[tuple[str, str, bool]](100)
    memory = service_for(folder, url=url)
    memory.on_change = lambda *change: send.send_nowait(change)
    memory.follower.is_wanted = lambda: True
    with anyio.fail_after(60), send, receive:
        async with memory:
            await memory.check()
            yield memory, receive


async def test_what_another_process_writes_is_noticed(
    tmp_path: Path, memory_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "_POLL_SECONDS", 0.05)
    async with (
        following(tmp_path, memory_url) as (_, changes),
        service_for(tmp_path, url=memory_url) as other,
    ):
        fox = await put(other, FOX, uri="fox")
        assert await changes.receive() == (fox.document_id, "added", False)
        await put(other, PIE, uri="fox")
        assert await changes.receive() == (fox.document_id, "updated", False)
        await other.writer.forget("fox", ORIGIN)
        assert await changes.receive() == (fox.document_id, "removed", False)


@pytest.mark.usefixtures("no_poll")
async def test_own_writes_are_noticed_at_once_and_once(tmp_path: Path, memory_url: str) -> None:
    async with following(tmp_path, memory_url) as (memory, changes):
        for number in range(3):
            done = await put(memory, f"text {number}", uri=f"doc-{number}")
            assert await changes.receive() == (done.document_id, "added", True)
        await put(memory, "text 0", uri="doc-0")  # It is unchanged.
        await memory.writer.forget("doc-1", ORIGIN)
        assert (await changes.receive())[1:] == ("removed", True)


async def test_the_index_reads_what_another_process_wrote_before_a_query_asks_for_it(
    tmp_path: Path, memory_url: str
) -> None:
    async with following(tmp_path, memory_url) as (memory, _):
        await put(memory, FOX, uri="fox")
        await memory.search.query("fox", 8)
        async with service_for(tmp_path, url=memory_url) as other:
            await put(other, PIE, uri="pie")
        unknown = (await memory.indexing.searcher("pie")).retriever.word_weights(["unknown"])
        # Not `query`, which would read it itself.
        while (await memory.indexing.searcher("pie")).retriever.word_weights(["pie"]) == unknown:
            await anyio.lowlevel.checkpoint()


async def test_nothing_is_followed_before_the_memory_is_in_use(tmp_path: Path) -> None:
    memory = service_for(tmp_path)
    memory.follower.is_wanted = lambda: True
    async with memory:
        await memory.follower.begin()
        await anyio.wait_all_tasks_blocked()
        assert memory.follower.lag_seconds == 0
    assert not (tmp_path / "memory.db").exists()


async def test_after_a_restore_the_writes_that_follow_are_noticed(tmp_path: Path) -> None:
    copy = await backup_of(tmp_path)
    async with following(tmp_path, "") as (memory, changes):
        restore(copy, tmp_path / "memory.db")
        await memory.check()
        async with service_for(tmp_path) as other:
            done = await put(other, "Something else.", uri="new")
        assert await changes.receive() == (done.document_id, "added", False)


@pytest.mark.full
@pytest.mark.usefixtures("no_poll")
async def test_a_hint_is_noticed_before_the_next_look(database: str, tmp_path: Path) -> None:
    url = f"{database}&schema=test_{secrets.token_hex(6)}"
    async with following(tmp_path, url) as (_, changes), service_for(tmp_path, url=url) as other:
        for number in range(2):  # The listener may only be starting when the first is committed.
            done = await put(other, f"text {number}", uri=f"doc-{number}")
            assert await changes.receive() == (done.document_id, "added", False)


@pytest.mark.full
@pytest.mark.usefixtures("no_poll")
async def test_a_lost_connection_for_hints_is_opened_again(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "_RECONNECT_SECONDS", (0.01, 0.01))
    url = f"{database}&schema=test_{secrets.token_hex(6)}"
    engine = PostgresEngine(url, tmp_path, 5)
    async with following(tmp_path, url) as (_, changes), service_for(tmp_path, url=url) as other:
        await put(other, FOX, uri="fox")
        await changes.receive()
        listening, this = "FROM pg_stat_activity WHERE query LIKE ?", f"LISTEN %{url.rpartition('=')[2]}%"
        while not await engine.read(f"SELECT pid {listening}", [this]):  # The first look may find it, too.
            await anyio.lowlevel.checkpoint()
        assert await engine.read(f"SELECT pg_terminate_backend(pid) {listening}", [this]) == [(True,)]
        await engine.close()
        await put(other, PIE, uri="pie")
        assert (await changes.receive())[1:] == ("added", False)
