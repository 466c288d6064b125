"""What is written: upserts, batches, long documents, and writes that fail.

Covers `ragmemory.stores.writing`.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio import from_thread

from ragcommon.contract.documents import Injected
from ragmemory.errors import (
    BadArgument,
    EmbedderMismatch,
    EmbedderUnavailable,
    NotStored,
    TextRefused,
)
from ragmemory.search import sync
from ragmemory.search.index.chunk_index import ChunkIndex
from ragmemory.search.index.segments import Segment
from ragmemory.service import MemoryService
from ragmemory.types.changes import Changes
from tests.support.memories import (
    FOX,
    LONG,
    ORIGIN,
    PIE,
    GatedEmbedder,
    SwitchableEmbedder,
    put,
    service_for,
    uris,
)
from tests.support.stores import BOTH_ENGINES, SQLITE_ONLY

pytestmark = BOTH_ENGINES


async def test_the_same_text_again_changes_nothing_and_costs_no_embedding(
    memory: MemoryService, embedder: SwitchableEmbedder
) -> None:
    await put(memory, FOX, uri="fox")
    again = await put(memory, FOX, uri="fox")
    assert again.status == "unchanged"
    assert again.chunks == 1
    assert embedder.calls == 1
    assert len(await memory.history.journal(10)) == 1


async def test_new_metadata_alone_is_written_without_embedding(
    memory: MemoryService, embedder: SwitchableEmbedder
) -> None:
    await put(memory, FOX, uri="fox", year=1)
    assert (await put(memory, FOX, uri="fox", year=2)).status == "updated"
    assert embedder.calls == 1
    assert await uris(memory, "fox", {"year": 2}) == ["fox"]
    assert await uris(memory, "fox", {"year": 1}) == []


async def test_new_places_of_the_same_text_are_written_without_embedding(
    memory: MemoryService, embedder: SwitchableEmbedder
) -> None:
    places = [(1, "Fox ¶ 1")]
    await put(memory, FOX, uri="fox")
    again = [await memory.writer.inject(FOX, {"uri": "fox"}, ORIGIN, places=places) for _ in range(2)]
    assert [one.status for one in again] == ["updated", "unchanged"]
    assert embedder.calls == 1
    [hit] = (await memory.search.query(FOX, 8)).hits
    assert hit.places == places
    assert (await put(memory, FOX, uri="fox")).status == "unchanged"


async def test_a_new_text_replaces_the_old_one(memory: MemoryService) -> None:
    await put(memory, FOX, uri="page")
    assert (await put(memory, PIE, uri="page")).status == "updated"
    hits = (await memory.search.query("fox jumps apple pie", 8)).hits
    assert [hit.text for hit in hits] == [PIE]


async def test_the_chunks_of_a_document_join_to_its_text(memory: MemoryService) -> None:
    text = "\n\n".join(f"## Part {i}\n\nSentence {i} of many, über alles. " * 20 for i in range(30))
    injected = await put(memory, text, uri="long")
    assert injected.chunks > 10
    info, shown = await memory.documents.read("long")
    assert shown == text
    assert (info.chunks, info.characters) == (injected.chunks, len(text))


async def test_many_at_once_share_commits_and_all_get_their_own_answer(
    memory: MemoryService, embedder: SwitchableEmbedder
) -> None:
    answers: dict[str, Injected] = {}

    async def one(name: str) -> None:
        answers[name] = await put(memory, f"# {name}\n\ntext of {name}", uri=name)

    async with anyio.create_task_group() as tasks:
        for number in range(64):
            tasks.start_soon(one, f"n{number}")
    assert {answer.uri for answer in answers.values()} == set(answers)
    assert {answer.status for answer in answers.values()} == {"added"}
    assert embedder.calls < 16
    assert (await memory.maintenance.stats()).documents == 64


async def test_two_texts_for_one_uri_at_once_end_with_the_last(memory: MemoryService) -> None:
    answers: list[str] = []

    async def one(text: str) -> None:
        answers.append((await put(memory, text, uri="same")).status)

    async with anyio.create_task_group() as tasks:
        for text in (FOX, PIE, PIE):
            tasks.start_soon(one, text)
    assert answers == ["added", "updated", "unchanged"]
    assert (await memory.documents.read("same"))[1] == PIE


async def test_bad_input_is_refused_before_anything_is_opened(memory: MemoryService, tmp_path: Path) -> None:
    with pytest.raises(BadArgument):
        await put(memory, " ")
    with pytest.raises(BadArgument):
        await put(memory, FOX, tags="red")
    assert not (tmp_path / "memory.db").exists()


async def test_with_the_embedder_down_an_inject_fails_and_stores_nothing(
    memory: MemoryService, embedder: SwitchableEmbedder
) -> None:
    await put(memory, FOX, uri="fox")
    embedder.is_down = True
    with pytest.raises(EmbedderUnavailable, match="turned off"):
        await put(memory, PIE, uri="pie")
    with pytest.raises(EmbedderUnavailable):
        await put(memory, PIE, uri="fox")
    assert (await put(memory, FOX, uri="fox")).status == "unchanged"
    assert (await put(memory, FOX, uri="fox", year=1)).status == "updated"
    assert [info.uri for info in (await memory.documents.page(10))[0]] == ["fox"]
    embedder.is_down = False
    assert (await put(memory, PIE, uri="pie")).status == "added"


async def test_another_embedder_than_the_stored_one_is_refused(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        await put(memory, FOX, uri="fox")
    async with service_for(tmp_path, SwitchableEmbedder("other:model")) as memory:
        with pytest.raises(EmbedderMismatch) as caught:
            await put(memory, PIE, uri="pie")
        assert "ragchat memory reembed" in caught.value.hint
        with pytest.raises(EmbedderMismatch):
            await memory.search.query("fox", 8)
        assert (await memory.documents.read("fox"))[1] == FOX
        assert (await put(memory, FOX, uri="fox")).status == "unchanged"


@SQLITE_ONLY
async def test_a_write_that_fails_at_the_commit_fails_none_of_the_others(
    tmp_path: Path, memory: MemoryService
) -> None:
    await put(memory, FOX, uri="fox")
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        connection.execute(
            "CREATE TRIGGER forbid BEFORE INSERT ON documents WHEN new.uri GLOB 'bad*'"
            " BEGIN SELECT RAISE(ABORT, 'the trigger says no'); END"
        )
    refused: list[str] = []

    async def write(service: MemoryService, uri: str) -> None:
        try:
            await put(service, f"The text of {uri}.", uri=uri)
        except NotStored as error:
            refused.append(error.uri)

    names = [f"{'bad' if number % 10 == 0 else 'good'}-{number}" for number in range(100)]
    async with service_for(tmp_path) as other, anyio.create_task_group() as tasks:
        for index, name in enumerate(names):
            tasks.start_soon(write, (memory, other)[index % 2], name)
    good = [name for name in names if name.startswith("good")]
    assert sorted(refused) == sorted(set(names) - set(good))
    found, _ = await memory.documents.page(200, 0, {"uri": "good*"})
    assert sorted(document.uri for document in found) == sorted(good)
    assert len(await memory.history.journal(200)) == 1 + len(good)
    assert await uris(memory, "good 11", {"uri": "good-11"}) == ["good-11"]


async def test_a_short_document_overtakes_a_long_one_which_nothing_finds_before_it_is_whole(
    tmp_path: Path,
) -> None:
    embedder = GatedEmbedder()
    with anyio.fail_after(60):
        async with service_for(tmp_path, embedder) as memory, anyio.create_task_group() as tasks:
            tasks.start_soon(partial(put, memory, LONG, uri="long"))
            await embedder.reached.wait()
            assert (await put(memory, FOX, uri="fox")).status == "added"
            assert await uris(memory, "Sentence3 stands here alone") == ["fox"]
            assert await uris(memory, '"Sentence3 stands"') == ["fox"]
            assert (await memory.maintenance.stats()).documents == 1
            embedder.gate.set()
    async with service_for(tmp_path, embedder) as memory:
        assert (await uris(memory, "Sentence3 stands here alone"))[0] == "long"
        assert (await memory.documents.read("long"))[1] == LONG
        assert (await put(memory, LONG, uri="long")).status == "unchanged"


async def test_a_large_write_returns_when_the_index_has_almost_caught_up(
    memory: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the index lags further with every write of a load, and the next start has to read it all."""
    monkeypatch.setattr(sync, "_MAX_BEHIND", 100)
    reached, gate, returned = anyio.Event(), threading.Event(), anyio.Event()
    apply = ChunkIndex.apply

    def wait(index: ChunkIndex, changes: Changes, built: Segment | None) -> None:
        from_thread.run_sync(reached.set)
        gate.wait()
        apply(index, changes, built)

    async def write() -> None:
        await put(memory, "".join(f"# Part {number}\n\nIt is alone.\n\n" for number in range(300)))
        returned.set()

    monkeypatch.setattr(ChunkIndex, "apply", wait)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        try:
            await reached.wait()
            assert not returned.is_set()
        finally:
            gate.set()
        await returned.wait()


async def test_documents_with_one_uri_keep_their_order_behind_a_long_one(tmp_path: Path) -> None:
    embedder = GatedEmbedder()
    with anyio.fail_after(60):
        async with service_for(tmp_path, embedder) as memory:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(put, memory, LONG, uri="doc"))
                await embedder.reached.wait()
                tasks.start_soon(partial(put, memory, FOX, uri="doc"))
                await put(memory, PIE, uri="other")
                embedder.gate.set()
            assert (await memory.documents.read("doc"))[1] == FOX
            assert [(entry.uri, entry.action) for entry in await memory.history.journal(10)] == [
                ("doc", "updated"),
                ("doc", "added"),
                ("other", "added"),
            ]


async def test_a_long_document_whose_caller_is_cancelled_is_worked_on_no_more(tmp_path: Path) -> None:
    embedder = GatedEmbedder()
    with anyio.fail_after(60):
        async with service_for(tmp_path, embedder) as memory:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(put, memory, LONG, uri="doc"))
                await embedder.reached.wait()
                tasks.cancel_scope.cancel()
            calls = embedder.calls
            assert memory.writer.queue.waiting == 0
            assert (await put(memory, FOX, uri="doc")).status == "added"
            assert embedder.calls == calls + 1
            assert await uris(memory, "Sentence3 stands here alone") == ["doc"]
            assert [entry.action for entry in await memory.history.journal(10)] == ["added"]


async def test_a_long_document_is_updated_forgotten_and_put_back(memory: MemoryService) -> None:
    await put(memory, LONG, uri="doc")
    assert (await put(memory, LONG + "And more.", uri="doc")).status == "updated"
    await memory.history.undo(ORIGIN)
    assert (await memory.documents.read("doc"))[1] == LONG
    assert (await memory.writer.forget("doc", ORIGIN)).chunks == 1_500
    assert await uris(memory, "Sentence3 stands here alone") == []
    await memory.history.undo(ORIGIN)
    assert (await memory.documents.read("doc"))[1] == LONG
    assert (await uris(memory, "Sentence3 stands here alone"))[0] == "doc"


async def test_a_text_that_the_embedder_refuses_fails_alone(tmp_path: Path) -> None:
    embedder = GatedEmbedder()
    failed: list[str] = []

    async def try_to_put(memory: MemoryService, text: str) -> None:
        try:
            await put(memory, text, uri=text)
        except TextRefused:
            failed.append(text)

    with anyio.fail_after(60):
        async with service_for(tmp_path, embedder) as memory:
            async with anyio.create_task_group() as tasks:
                for text in ["one", "two", "is refused", "three", "four"]:
                    tasks.start_soon(try_to_put, memory, text)
            assert failed == ["is refused"]
            assert (await memory.maintenance.stats()).documents == 4
