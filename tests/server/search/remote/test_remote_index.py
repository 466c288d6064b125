"""A remote index: the same hits as the index of a process, whatever the server has, and when it is away.

Also the tests of `updating`, `vector_store`, `pgvector`, `qdrant`, `ragmemory.stores.remote`,
`ragmemory.search.indexing` and `ragmemory.search.index.candidates`.
"""

from __future__ import annotations

import secrets
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream
from starlette.responses import HTMLResponse

from ragcommon.contract.search import Hit
from ragmcp.http.exchange import Receive, Scope, Send
from ragmemory.errors import IndexUnavailable
from ragmemory.search.remote import remote_index
from ragmemory.search.remote.qdrant import Qdrant
from ragmemory.search.remote.updating import PAGE, LeaseLost
from ragmemory.search.remote.vector_store import ChangePage, Commit, Sought
from ragmemory.service import MemoryService
from ragmemory.stores import leases
from ragmemory.stores.postgres.connection import numbered
from tests.support.http_server import served
from tests.support.memories import (
    FOX,
    LONG,
    ORIGIN,
    PIE,
    SwitchableEmbedder,
    put,
    restore,
    service_for,
    uris,
)
from tests.support.qdrant_server import Collections, application
from tests.support.remote import catch_up, qdrant_url
from tests.support.remote import remote_index as index_of

pytestmark = pytest.mark.full
QUESTIONS = (
    "which animal3 jumps over word5",
    "animal",
    "jumps",
    "the thing of the lazy dog",
    '"lazy dog"',
    "anim*",
    "where is the trebuchte?",
    "nothing of this",
)


@pytest.fixture(params=["pgvector", "qdrant"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def memory(
    tmp_path: Path, embedder: SwitchableEmbedder, memory_url: str, index_url: str
) -> AsyncIterator[MemoryService]:
    """Its index is brought up to date by the tests."""
    with anyio.fail_after(120):
        async with service_for(tmp_path, embedder, url=memory_url, index=index_url) as memory:
            yield memory


@pytest.fixture(autouse=True)
def _no_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests say when a page is sent."""
    monkeypatch.setattr(remote_index, "_FOLLOW_SECONDS", 3600.0)


async def answers(memory: MemoryService, filter: dict[str, Any] | None = None) -> list[list[Hit]]:
    return [(await memory.search.query(question, 8, filter)).hits for question in QUESTIONS]


async def counted(memory: MemoryService) -> int:
    """The number of chunks that the server has."""
    await index_of(memory).bring_up_to_date()
    state, _ = await index_of(memory).remote.state(index_of(memory).name)
    return state.chunks if state else 0


def assert_alike(found: list[list[Hit]], expected: list[list[Hit]]) -> None:
    for hits, others in zip(found, expected, strict=True):
        assert [(hit.uri, hit.chunk_id) for hit in hits] == [(hit.uri, hit.chunk_id) for hit in others]
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in others], abs=1e-6)


async def test_hits_and_scores_are_those_of_an_index_of_all_chunks_wherever_a_chunk_is(
    tmp_path: Path, memory: MemoryService, memory_url: str
) -> None:
    async with service_for(tmp_path, url=memory_url) as other:
        for number in range(24):
            text = f"Animal{number % 5} jumps over word{number} and thing{number % 7} of the lazy dog."
            await put(memory, text, uri=f"file:///{number % 2}/{number}", tags=[f"tag{number % 3}"])
        await put(memory, "The trebuchet stands in the courtyard.", uri="castle")
        for filter in (None, {"tags": ["tag1"]}, {"uri": "file:///1/*"}):
            assert_alike(await answers(memory, filter), await answers(other, filter))
        await catch_up(memory)
        for filter in (None, {"tags": ["tag1"]}, {"uri": "file:///1/*"}):
            assert_alike(await answers(memory, filter), await answers(other, filter))
        # A part of it is newer, and a part of what is older has changed.
        for number in range(20, 30):
            await put(
                memory, f"Animal{number % 5} sleeps on word{number}.", uri=f"file:///{number % 2}/{number}"
            )
        await memory.writer.forget("file:///0/4", ORIGIN)
        assert (await uris(memory, "animal0 sleeps on word25"))[0] == "file:///1/25"
        assert all(hit.uri != "file:///0/4" for hits in await answers(memory) for hit in hits)
        await catch_up(memory)
        assert_alike(await answers(memory), await answers(other))
        assert await counted(memory) == (await memory.maintenance.stats()).chunks


async def test_a_changed_tag_is_filtered_by_before_the_index_has_it(memory: MemoryService) -> None:
    await put(memory, FOX, uri="fox", tags=["old"])
    await catch_up(memory)
    await put(memory, FOX, uri="fox", tags=["new"])
    assert await uris(memory, "fox", {"tags": ["new"]}) == ["fox"]
    assert await uris(memory, "fox", {"tags": ["old"]}) == []


async def test_pages_of_a_long_document_are_found_once_it_is_whole_and_no_longer_once_it_is_replaced(
    memory: MemoryService,
) -> None:
    await put(memory, LONG, uri="long")
    assert await uris(memory, "Sentence700") == ["long"] * 8
    await catch_up(memory)
    assert await counted(memory) > PAGE
    assert (await memory.search.query("Sentence700", 1)).hits[0].heading == "Part 700"
    await put(memory, FOX, uri="long")
    assert await uris(memory, "fox Sentence700") == ["long"]
    await catch_up(memory)
    assert await uris(memory, "fox Sentence700") == ["long"]


async def test_what_one_process_writes_another_finds_at_its_next_query_and_one_of_them_updates(
    tmp_path: Path, memory: MemoryService, memory_url: str, index_url: str
) -> None:
    async with service_for(tmp_path, url=memory_url, index=index_url) as other:
        await put(memory, FOX, uri="fox")
        assert await uris(other, "fox") == ["fox"]
        await catch_up(memory)
        await put(other, PIE, uri="pie")
        await index_of(memory)._updater.lead()
        await catch_up(other)  # It has no lease.
        assert not index_of(other)._updater.leads
        assert await counted(memory) == 1
        assert (await uris(memory, "apple pie"))[0] == (await uris(other, "apple pie"))[0] == "pie"
        await catch_up(memory)
        assert (await uris(other, "apple pie"))[0] == "pie"
        await other.writer.forget("pie", ORIGIN)
        assert await uris(memory, "apple pie fox") == ["fox"]


async def test_an_index_that_has_everything_is_only_looked_at(
    tmp_path: Path, memory: MemoryService, memory_url: str, index_url: str
) -> None:
    await put(memory, FOX, uri="fox")
    await catch_up(memory)
    version = await memory._store.engine.version()
    async with service_for(tmp_path, url=memory_url, index=index_url) as other:
        await other.search.query("fox", 1)
        for one in (memory, other):
            await catch_up(one)
            assert not index_of(one)._updater.leads
        assert await memory._store.engine.read("SELECT * FROM leases") == []
    assert await memory._store.engine.version() == version


async def test_an_empty_memory_gives_an_empty_result(memory: MemoryService) -> None:
    found = await memory.search.query("fox", 8)
    assert (found.hits, found.empty, found.notice) == ([], True, "")
    await put(memory, FOX, uri="fox")
    await catch_up(memory)
    await memory.writer.forget("fox", ORIGIN)
    await catch_up(memory)
    found = await memory.search.query("fox", 8)
    assert (found.hits, found.empty, found.notice) == ([], True, "")


async def lose(memory: MemoryService) -> None:
    """Delete what the server holds."""
    index = index_of(memory)
    await index.bring_up_to_date()
    if isinstance(index.vectors, Qdrant):
        async with index.vectors._client() as client:
            await client.delete_collection(index.name)
    else:
        async with memory._store.engine.transaction() as connection:
            await connection.execute("DROP TABLE remote_chunks")


async def test_an_index_that_is_deleted_costs_the_vectors_and_is_built_again_while_serving(
    memory: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_index, "_DOWN_SECONDS", 0.0)
    await put(memory, FOX, uri="fox")
    await catch_up(memory)
    await lose(memory)
    found = await memory.search.query("brown fox", 8)
    assert [hit.uri for hit in found.hits] == ["fox"]
    assert found.notice.startswith("Searched by some of the words alone. The index ")
    await catch_up(memory)
    await put(memory, PIE, uri="pie")
    found = await memory.search.query("brown fox", 8)
    assert [hit.uri for hit in found.hits] == ["fox", "pie"]
    assert found.notice == ""


@pytest.mark.parametrize("kind", ["pgvector"])
async def test_queries_with_as_many_words_use_the_same_statement(memory: MemoryService) -> None:
    for number in range(8):
        await put(memory, f"Animal{number} jumps over word{number}.", uri=f"fox{number}")
    await catch_up(memory)
    sizes = set[int]()
    for number in range(8):
        assert (await uris(memory, f"animal{number} word{number}"))[0] == f"fox{number}"
        sizes.add(numbered.cache_info().currsize)
    assert len(sizes) == 1


@pytest.mark.parametrize("kind", ["pgvector"])
async def test_words_are_looked_up_in_an_index_not_in_every_passage(
    memory: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(memory, FOX, uri="fox")
    await put(memory, PIE, uri="pie")
    await catch_up(memory)
    vectors, engine = index_of(memory).vectors, memory._store.engine

    async def scans() -> int:
        await engine.read("SELECT pg_stat_force_next_flush()")
        sql = "SELECT seq_scan FROM pg_stat_user_tables WHERE relid = CAST('remote_chunks' AS regclass)"
        [(count,)] = await engine.read(sql)
        return int(count)

    async def by_words(sought: Sought) -> list[int]:
        return await candidates(sought._replace(vector=None))

    candidates = vectors.candidates
    monkeypatch.setattr(vectors, "candidates", by_words)
    before = await scans()
    assert (await uris(memory, "brown fox"))[0] == "fox"
    assert await scans() == before


async def test_what_is_neither_in_the_index_nor_in_the_tail_is_found_by_words_and_that_is_said(
    memory: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_index, "MAX_TAIL", 4)
    for number in range(12):
        await put(memory, f"Animal{number} jumps over word{number}.", uri=f"fox{number}")
    for number in (0, 5, 11):
        found = await memory.search.query(f"animal{number} jumps", 8)
        assert found.hits[0].uri == f"fox{number}"
        assert found.notice == "The index is being built: 10 passages were searched by some words alone."
    await catch_up(memory)
    assert (await memory.search.query("animal5 jumps", 8)).notice == ""
    assert len((await memory.search.query("jumps", 12)).hits) == 12


async def test_a_reembedding_makes_a_new_index(
    tmp_path: Path, memory: MemoryService, memory_url: str, index_url: str
) -> None:
    await put(memory, FOX, uri="fox")
    await catch_up(memory)
    before = index_of(memory).name
    async with service_for(
        tmp_path, SwitchableEmbedder("other:model"), url=memory_url, index=index_url
    ) as other:
        await other.maintenance.reembed(_nothing)
        assert await uris(other, "fox") == ["fox"]
        await catch_up(other)
        assert await uris(other, "fox") == ["fox"]
        name = index_of(other).name
        assert name != before
        assert (await index_of(other).remote.state(before))[0] is None
        if isinstance(vectors := index_of(other).vectors, Qdrant):
            async with vectors._client() as client:
                assert [one.name for one in (await client.get_collections()).collections] == [name]


async def _nothing(*_: object) -> None:
    """Reports no progress."""


@pytest.mark.parametrize("kind", ["qdrant"])
async def test_a_memory_that_is_restored_from_a_copy_gets_its_index_again(
    tmp_path: Path, index_url: str
) -> None:
    path = tmp_path / "memory.db"
    async with service_for(tmp_path, index=index_url) as memory:
        await put(memory, FOX, uri="fox")
        await catch_up(memory)
    shutil.copy(path, tmp_path / "copy.db")
    async with service_for(tmp_path, index=index_url) as memory:
        await memory.writer.forget("fox", ORIGIN)
        await put(memory, PIE, uri="pie")
        await catch_up(memory)
        restore(tmp_path / "copy.db", path)
        await put(memory, "# Sea\n\nWhales sing in the deep sea.", uri="whale")
        await catch_up(memory)
        # By its meaning: no word is in the text.
        assert (await uris(memory, "a hound and a speedy vixen"))[0] == "fox"
        assert "pie" not in await uris(memory, "apple pie")


async def test_a_qdrant_that_is_away_costs_the_vectors_not_the_answer(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with service_for(tmp_path, index="http://127.0.0.1:9") as memory:
            await put(memory, FOX, uri="fox")
            assert await uris(memory, "fox") == ["fox"]  # from the tail
            with pytest.raises(IndexUnavailable, match=r"127\.0\.0\.1:9 is not available"):
                await catch_up(memory)
            async with AsyncExitStack() as stack:
                url = await qdrant_url(stack)
                other = await stack.enter_async_context(service_for(tmp_path, index=url))
                await catch_up(other)
            await put(memory, PIE, uri="pie")
            found = await memory.search.query("brown fox", 8)
            assert [hit.uri for hit in found.hits] == ["fox", "pie"]
            assert found.notice.startswith(
                "Searched by some of the words alone. The index http://127.0.0.1:9"
            )


async def test_vectors_that_are_quantized_and_on_a_disk_are_found_alike(tmp_path: Path) -> None:
    collections = Collections(tmp_path)
    flags: dict[str, Any] = {"index__quantization": "int8", "index__on_disk": True}
    async with AsyncExitStack() as stack:
        stack.callback(collections.close)
        url = await stack.enter_async_context(served(application(collections)))
        memory = await stack.enter_async_context(service_for(tmp_path, index=url, **flags))
        other = await stack.enter_async_context(service_for(tmp_path))
        for number in range(24):
            await put(memory, f"Animal{number % 5} jumps over word{number}.", uri=f"file:///{number}")
        await catch_up(memory)
        assert_alike(await answers(memory), await answers(other))
        [collection] = collections.named.values()
        vectors = collection.settings["vectors"]["meaning"]
        assert vectors["quantization_config"]["scalar"] == {"type": "int8", "always_ram": True}
        assert vectors["on_disk"]
        assert collection.settings["sparse_vectors"]["words"]["index"]["on_disk"]


@pytest.mark.parametrize("status", [200, 429])
async def test_a_proxy_that_answers_for_a_qdrant_costs_the_vectors_not_the_answer(
    tmp_path: Path, status: int
) -> None:
    async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
        headers = {"retry-after": "5"}
        await HTMLResponse("<h1>Please sign in</h1>", status, headers)(scope, receive, send)

    async with AsyncExitStack() as stack:
        memory = await stack.enter_async_context(
            service_for(tmp_path, index=await stack.enter_async_context(served(proxy)))
        )
        await put(memory, FOX, uri="fox")
        with pytest.raises(IndexUnavailable):
            await catch_up(memory)
        assert await uris(memory, "fox") == ["fox"]


async def test_a_qdrant_that_does_not_answer_in_time_is_named_with_the_seconds(tmp_path: Path) -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        async with service_for(tmp_path, index=url, index__timeout_seconds=1.0) as memory:
            await put(memory, FOX, uri="fox")
            with pytest.raises(IndexUnavailable, match="it did not answer within 1 s"):
                await catch_up(memory)


async def test_a_process_updates_the_index_by_itself_and_a_load_waits_for_it_unless_it_does_not_come_closer(
    memory: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_index, "_MAX_BEHIND", 0)
    await put(memory, FOX, uri="fox")
    await catch_up(memory)
    await put(memory, PIE, uri="pie")
    monkeypatch.setattr(remote_index, "_FOLLOW_SECONDS", 0.01)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(index_of(memory).follow, anyio.sleep_forever)
        await index_of(memory).keep_up()
        while await counted(memory) < 2:
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    await put(memory, "Whales sing.", uri="whale")
    await index_of(memory).keep_up()
    assert await counted(memory) == 2


async def pass_time(memory: MemoryService) -> None:
    """As if the time of all leases had passed."""
    async with memory._store.engine.transaction(ordered=False) as connection:
        await connection.execute("UPDATE leases SET until = 0")


UPDATES = """
import anyio, sys
from ragmemory.search.remote import remote_index
from tests.support.memories import service_for
from tests.support.remote import catch_up
from tests.support.remote import remote_index as index_of

async def main():
    remote_index._FOLLOW_SECONDS = 3600.0
    async with service_for(sys.argv[1], url=sys.argv[2], index="pgvector") as memory:
        await memory.search.query("fox", 1)
        await catch_up(memory)
        await index_of(memory)._updater.lead()
        print("leads", flush=True)
        await anyio.sleep_forever()

from pathlib import Path
sys.argv[1] = Path(sys.argv[1])
anyio.run(main)
"""


@pytest.mark.parametrize("kind", ["pgvector"])
async def test_an_updater_that_is_killed_is_replaced(
    tmp_path: Path, memory: MemoryService, memory_url: str
) -> None:
    await put(memory, FOX, uri="fox")
    words = [sys.executable, "-c", UPDATES, str(tmp_path), memory_url]
    async with await anyio.open_process(words, stderr=None) as process:
        assert process.stdout is not None
        assert await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 100) == b"leads"
        await put(memory, PIE, uri="pie")
        await catch_up(memory)
        assert not index_of(memory)._updater.leads
        process.kill()
    assert not await index_of(memory)._updater.lead()
    await pass_time(memory)
    assert await index_of(memory)._updater.lead()
    await catch_up(memory)
    assert await counted(memory) == 2


async def test_an_updater_that_was_frozen_changes_nothing_when_it_wakes(
    tmp_path: Path,
    memory: MemoryService,
    memory_url: str,
    index_url: str,
) -> None:
    await put(memory, FOX, uri="fox")
    async with service_for(tmp_path, url=memory_url, index=index_url) as other:
        vectors = index_of(memory).vectors
        apply = vectors.apply

        async def frozen(page: ChangePage, commit: Commit) -> None:
            await pass_time(memory)
            await other.search.query("fox", 1)
            await catch_up(other)
            await index_of(memory)._updater.renew_lease()
            await apply(page, commit)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(vectors, "apply", frozen)
            with pytest.raises(LeaseLost):
                await catch_up(memory)
        assert await counted(memory) == 1
        assert await uris(memory, "fox") == await uris(other, "fox") == ["fox"]


async def test_a_removal_that_is_sent_again_is_counted_once(memory: MemoryService) -> None:
    await put(memory, FOX, uri="fox")
    await put(memory, PIE, uri="pie")
    await catch_up(memory)
    assert await counted(memory) == 2
    await memory.writer.forget("fox", ORIGIN)

    async def ended(*_: object) -> bool:
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leases, "renew", ended)
        with pytest.raises(LeaseLost):
            await catch_up(memory)
    await catch_up(memory)
    assert await counted(memory) == 1
    assert await uris(memory, "fox") == ["pie"]


async def test_without_the_right_to_make_the_extension_it_is_said_what_to_do(
    tmp_path: Path, database: str
) -> None:
    import psycopg

    name = f"limited_{secrets.token_hex(4)}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        connection.execute(f"CREATE DATABASE {name} OWNER {name}")
    url = database.replace("postgres@", f"{name}@").replace("/postgres?", f"/{name}?")
    async with service_for(tmp_path, url=url, index="pgvector") as memory:
        await put(memory, FOX, uri="fox")
        with pytest.raises(IndexUnavailable) as caught:
            await catch_up(memory)
        assert "permission denied to create extension" in caught.value.reason
        assert "CREATE EXTENSION vector" in caught.value.hint
        assert await uris(memory, "fox") == ["fox"]
