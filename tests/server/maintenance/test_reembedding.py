"""Memory is searched all the time, old and new are never mixed, a cut-off reembedding is continued.

Kills are in tests/faults. Covers `ragmemory.stores.reembedding`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from random import Random

import anyio
import numpy as np
import pytest
from numpy.typing import NDArray

from ragmemory.embedders import WordWeights
from ragmemory.errors import EmbedderMismatch, EmbedderUnavailable, ReembeddingEnded
from ragmemory.maintenance import reembedding
from ragmemory.search import sync
from ragmemory.service import MemoryService
from ragmemory.types.writes import Embedding
from tests.support.memories import LOCAL, ORIGIN, InterruptedEmbedder, SwitchableEmbedder, service_for
from tests.support.stores import BOTH_ENGINES, sql

pytestmark = BOTH_ENGINES

FOX = "# Animals\n\nThe quick brown fox jumps over the lazy dog.\n"
PIE = "# Kitchen\n\nBake the apple pie for forty minutes.\n"
# Finds the fox by meaning alone.
MEANING = "an animal leaps"
LONG = "".join(f"# Part {number}\n\nSentence{number} stands here alone.\n\n" for number in range(1_200))


class OppositeEmbedder(SwitchableEmbedder):
    """Its vectors are the opposite of those of `local`: with a vector of the other kind nothing is similar.

    It fails when it has embedded `most` texts.
    """

    def __init__(self, identity: str = "opposite") -> None:
        super().__init__(identity)
        self.texts: list[str] = []
        self.most = 1_000_000

    async def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        if len(self.texts) >= self.most:
            raise EmbedderUnavailable(self.identity, "it was turned off")
        self.texts += texts
        return [negated(one) for one in await super().embed_documents(texts, titles)]

    async def embed_query(self, text: str, weights: WordWeights) -> NDArray[np.float32] | None:
        vector = await super().embed_query(text, weights)
        return None if vector is None else -vector


def negated(embedding: Embedding) -> Embedding:
    return (-np.frombuffer(embedding, "<f2")).tobytes()


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[MemoryService]:
    with anyio.fail_after(60):
        async with service_for(tmp_path) as memory:
            yield memory


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reembedding, "_PAGE", 2)


async def put(memory: MemoryService, text: str, uri: str) -> None:
    await memory.writer.inject(text, {"uri": uri}, ORIGIN)


async def fill(memory: MemoryService) -> None:
    await put(memory, FOX, "fox")
    await put(memory, PIE, "pie")
    for number in range(9):
        await put(memory, f"# Note {number}\n\nThe invoice {number} was paid.\n", f"note {number}")


async def ignore(*_: object) -> None:
    """Reports no progress."""


def embeddings(folder: Path) -> list[tuple[int, bytes]]:
    return sql(folder / "memory.db", "SELECT chunk_id, vector FROM embeddings ORDER BY chunk_id")


async def is_found_by_meaning(memory: MemoryService) -> bool:
    [first, *_] = (await memory.search.query(MEANING, 3)).hits
    return first.uri == "fox"


async def test_memory_is_searched_with_the_old_embeddings_until_the_switch(
    tmp_path: Path, memory: MemoryService
) -> None:
    await fill(memory)
    notices: set[str] = set()

    async def look(*_: int) -> None:
        assert await is_found_by_meaning(memory)
        assert await is_found_by_meaning(other)
        notices.add((await other.search.query(MEANING, 3)).notice)

    async with service_for(tmp_path, OppositeEmbedder()) as other:
        with pytest.raises(EmbedderMismatch):
            await other.search.query(MEANING, 3)
        await other.maintenance.reembed(look)
        assert notices == {
            f"Searched with {LOCAL.identity}, because the memory is not yet embedded with opposite."
            " `ragchat memory reembed` completes that."
        }
        assert await is_found_by_meaning(other)
        assert (await other.search.query(MEANING, 3)).notice == ""
        with pytest.raises(EmbedderMismatch):
            await memory.search.query(MEANING, 3)


async def test_embeddings_can_be_collected_first_and_used_later(
    tmp_path: Path, memory: MemoryService
) -> None:
    await fill(memory)
    async with service_for(tmp_path, other := OppositeEmbedder()) as trying:
        assert (await trying.maintenance.prepare_embedder(ignore)).embedder == "opposite"
        collected = await trying.maintenance.reembed(ignore, switch=False)
        assert collected.computed == (await memory.maintenance.stats()).chunks
        assert await is_found_by_meaning(memory)
        embedded = len(other.texts)
        assert (await trying.maintenance.reembed(ignore)).computed == 0
        assert await is_found_by_meaning(trying)
        assert len(other.texts) == embedded


async def test_queries_beside_the_switch_never_mix_old_and_new(tmp_path: Path, memory: MemoryService) -> None:
    await fill(memory)
    async with service_for(tmp_path, OppositeEmbedder()) as other:
        queries = 0

        async def ask_all_the_time() -> None:
            nonlocal queries
            while True:
                found = await other.search.query(f"{MEANING} fox", 3)
                assert found.hits[0].uri == "fox"
                assert found.hits[0].score > 0.5
                queries += 1

        async def begin(*_: int) -> None:
            if not queries:
                tasks.start_soon(ask_all_the_time)
                while not queries:
                    await other.maintenance.stats()

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                await other.maintenance.reembed(begin)
            before, queries = queries, 0
            while not queries:
                await other.maintenance.stats()
            tasks.cancel_scope.cancel()
        assert before


async def test_without_the_old_embedder_memory_is_searched_by_words_until_the_switch(tmp_path: Path) -> None:
    async with service_for(tmp_path, OppositeEmbedder("gone")) as memory:
        await fill(memory)
    async with service_for(tmp_path, OppositeEmbedder("new")) as other:

        async def look(*_: int) -> None:
            found = await other.search.query("quick fox", 3)
            assert found.hits[0].uri == "fox"
            assert found.notice.startswith("Searched by words alone, because the memory is not yet embedded")

        await other.maintenance.reembed(look)
        assert (await other.search.query("quick fox", 3)).notice == ""


@pytest.mark.parametrize(("text", "page"), [(FOX, 2), (LONG + FOX, 8)], ids=["short", "long"])
async def test_what_is_written_during_a_reembedding_is_among_the_old_and_the_new(
    tmp_path: Path, memory: MemoryService, monkeypatch: pytest.MonkeyPatch, text: str, page: int
) -> None:
    monkeypatch.setattr(reembedding, "_PAGE", page)
    await fill(memory)
    await memory.writer.forget("fox", ORIGIN)
    async with service_for(tmp_path, OppositeEmbedder()) as other:
        written = False

        async def write(*_: int) -> None:
            nonlocal written
            if not written:
                written = True
                await put(memory, text, "by the old one")
                await put(other, text.replace("fox", "vixen"), "by the new one")
                assert (await memory.search.query(MEANING, 1)).hits[0].uri == "by the old one"
                for service in (memory, other):
                    assert (await service.search.query("vixen", 1)).hits[0].uri == "by the new one"

        done = await other.maintenance.reembed(write)
        stats = await other.maintenance.stats()
        assert done.chunks == stats.chunks
        found = (await other.search.query(MEANING, 2)).hits
        assert {hit.uri for hit in found} == {"by the old one", "by the new one"}
        assert (await other.maintenance.verify(ignore)).ok


async def test_one_that_was_cut_off_again_and_again_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    chance = Random(1)
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        async with service_for(folder) as memory:
            await fill(memory)
    async with service_for(folders[0], OppositeEmbedder()) as memory:
        undisturbed = await memory.maintenance.reembed(ignore)
    texts: list[str] = []
    while True:
        embedder = OppositeEmbedder()
        embedder.most = chance.randint(0, 6)
        async with service_for(folders[1], embedder) as memory:
            before = await memory.maintenance.stats()
            assert before.embedder == LOCAL.identity
            try:
                done = await memory.maintenance.reembed(ignore)
                break
            except EmbedderUnavailable:
                assert (await memory.maintenance.stats()).next_embedder == "opposite"
            finally:
                texts += embedder.texts
    assert embeddings(folders[1]) == embeddings(folders[0])
    assert done.chunks == undisturbed.chunks == len(texts) == len(set(texts))


async def test_going_back_computes_only_what_is_newer(tmp_path: Path, memory: MemoryService) -> None:
    await fill(memory)
    before = embeddings(tmp_path)
    async with service_for(tmp_path, OppositeEmbedder()) as other:
        await other.maintenance.reembed(ignore)
        await put(other, "Something new.", "new")
        await other.writer.forget("pie", ORIGIN)
        stats = await other.maintenance.stats()
        assert (stats.kept_embedder, stats.kept_bytes) == (LOCAL.identity, 11 * 512)
    done = await memory.maintenance.reembed(ignore)
    assert (done.chunks, done.computed, done.kept_embedder) == (11, 1, "opposite")
    assert embeddings(tmp_path)[:-1] == [row for row in before if row[0] != 2]
    assert await is_found_by_meaning(memory)
    assert (await memory.maintenance.verify(ignore)).ok


async def test_embeddings_of_the_same_embedder_are_not_kept(memory: MemoryService) -> None:
    await fill(memory)
    done = await memory.maintenance.reembed(ignore)
    assert (done.computed, done.kept_embedder, done.kept_bytes) == (11, "", 0)
    assert (await memory.maintenance.reembed(ignore)).computed == 11


async def test_discarded_embeddings_are_computed_again(tmp_path: Path, memory: MemoryService) -> None:
    await fill(memory)
    async with service_for(tmp_path, OppositeEmbedder()) as other:
        await other.maintenance.reembed(ignore)
        stats = await other.maintenance.discard_embeddings()
        assert (stats.kept_embedder, stats.kept_bytes, stats.embedder) == ("", 0, "opposite")
        assert await is_found_by_meaning(other)
    assert (await memory.maintenance.reembed(ignore)).computed == 11


async def test_one_that_another_embedder_replaces_ends_with_an_error(
    tmp_path: Path, memory: MemoryService
) -> None:
    await fill(memory)
    async with service_for(tmp_path, OppositeEmbedder()) as other:

        async def discard(*_: int) -> None:
            await memory.maintenance.discard_embeddings()

        with pytest.raises(ReembeddingEnded, match="with opposite"):
            await other.maintenance.reembed(discard)
        assert await is_found_by_meaning(memory)
        with pytest.raises(EmbedderMismatch):
            await other.search.query(MEANING, 3)


async def test_a_query_that_began_before_a_switch_finds_what_is_not_yet_read_again(
    tmp_path: Path, memory: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(memory)
    embedder = InterruptedEmbedder()
    async with service_for(tmp_path, embedder) as asked, anyio.create_task_group() as tasks:

        async def switch() -> None:
            await memory.maintenance.reembed(ignore)
            monkeypatch.setattr(sync, "_PAGE", 1)
            tasks.start_soon(asked.warm_up)
            await anyio.wait_all_tasks_blocked()

        await asked.warm_up()
        embedder.meanwhile = switch
        hits = (await asked.search.query("invoice 8", 8)).hits
        assert hits[0].uri == "note 8"
