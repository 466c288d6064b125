"""Reembedding of a memory that several processes use."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from ragcommon.contract.maintenance import Reembedded
from ragmemory.errors import (
    EmbedderMismatch,
    EmbedderUnavailable,
)
from ragmemory.service import MemoryService
from tests.support.memories import (
    FOX,
    ORIGIN,
    PIE,
    SwitchableEmbedder,
    put,
    service_for,
    uris,
)
from tests.support.stores import BOTH_ENGINES, SQLITE_ONLY

pytestmark = BOTH_ENGINES


async def progressed(done: int, total: int) -> None:
    assert 0 < done <= total


async def test_reembedding_gives_a_memory_to_another_embedder(tmp_path: Path, memory: MemoryService) -> None:
    await put(memory, FOX, uri="fox")
    await put(memory, PIE, uri="pie")
    async with service_for(tmp_path, SwitchableEmbedder("other:model")) as other:
        with pytest.raises(EmbedderMismatch):
            await other.search.query("fox", 8)
        kept = SwitchableEmbedder().identity
        assert await other.maintenance.reembed(progressed) == Reembedded(2, "other:model", 2, kept, 2 * 512)
        assert (await uris(other, "quick fox"))[0] == "fox"
        assert (await put(other, "# New", uri="new")).status == "added"
        assert (await other.maintenance.stats()).embedder == "other:model"
    with pytest.raises(EmbedderMismatch):
        await memory.search.query("fox", 8)
    # Going back: only what is newer is embedded.
    assert await memory.maintenance.reembed(progressed) == Reembedded(3, kept, 1, "other:model", 3 * 512)
    assert (await uris(memory, "quick fox"))[0] == "fox"


@SQLITE_ONLY
async def test_other_processes_rebuild_their_index_after_a_reembedding_with_the_same_embedder(
    tmp_path: Path, memory: MemoryService
) -> None:
    await put(memory, FOX, uri="fox")
    assert await uris(memory, "fox") == ["fox"]
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection, connection:
        connection.execute("UPDATE embeddings SET vector = zeroblob(512)")
    async with service_for(tmp_path) as other:
        await other.maintenance.reembed(progressed)
    await memory.search.query("an animal leaps", 8)
    [scored] = [hit.score for hit in (await memory.search.query("an animal leaps", 8)).hits]
    assert scored > 0


async def test_a_reembedding_that_fails_leaves_the_old_embeddings(
    tmp_path: Path, memory: MemoryService
) -> None:
    await put(memory, FOX, uri="fox")
    embedder = SwitchableEmbedder("other:model")
    embedder.is_down = True
    async with service_for(tmp_path, embedder) as other:
        with pytest.raises(EmbedderUnavailable):
            await other.maintenance.reembed(progressed)
    assert await uris(memory, "quick fox") == ["fox"]
    assert (await memory.maintenance.stats()).embedder == SwitchableEmbedder().identity


async def test_what_is_injected_during_a_reembedding_is_embedded_too(
    tmp_path: Path, memory: MemoryService
) -> None:
    await put(memory, FOX, uri="fox")

    async def inject_once(*_: int) -> None:
        await put(memory, PIE, uri="pie")
        await put(memory, FOX + "\nAgain.", uri="fox")

    async with service_for(tmp_path, SwitchableEmbedder("other:model")) as other:
        assert (await other.maintenance.reembed(inject_once)).chunks == 2
        assert (await uris(other, "apple pie"))[0] == "pie"


async def test_reembedding_an_empty_memory_leaves_it_free_for_any_embedder(
    tmp_path: Path, memory: MemoryService
) -> None:
    await put(memory, FOX, uri="fox")
    await memory.writer.forget("fox", ORIGIN)
    assert await memory.maintenance.reembed(progressed) == Reembedded(0, SwitchableEmbedder().identity)
    async with service_for(tmp_path, SwitchableEmbedder("other:model")) as other:
        assert (await put(other, PIE, uri="pie")).status == "added"


async def test_two_reembeddings_at_once_lose_nothing(
    memory: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragmemory.maintenance.reembedding._PAGE", 1)
    for name in ("one", "two", "three"):
        await put(memory, f"# {name}", uri=name)
    reembedded: list[Reembedded] = []

    async def again() -> None:
        reembedded.append(await memory.maintenance.reembed(progressed))

    async def begin_again(done: int, _: int) -> None:
        if done == 1:
            tasks.start_soon(again)
            for _ in range(20):  # Time for the other one to come as far as it can.
                await memory.maintenance.stats()

    async with anyio.create_task_group() as tasks:
        reembedded.append(await memory.maintenance.reembed(begin_again))
    assert [one.chunks for one in reembedded] == [3, 3]
    assert set(await uris(memory, "one two three")) == {"one", "two", "three"}
