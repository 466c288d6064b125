"""The memory as it is opened, closed, replaced and deleted while programs use it.

Covers `app`, `documents` and the types: `ragmemory.types.blocks`, `ragmemory.types.changes`,
`ragmemory.types.code`, `ragmemory.types.documents`, `ragmemory.types.history`, `ragmemory.types.writes`.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
from contextlib import closing
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import pytest
from anyio import to_thread
from anyio.abc import TaskStatus

from ragmcp.errors import AsyncioRequired
from ragmemory.app import make_embedder
from ragmemory.errors import BadArgument, MemoryUnusable, NotAMemory
from ragmemory.memory import Memory
from ragmemory.search.sync import IndexSync
from ragmemory.service import MemoryService
from ragmemory.stores.sqlite.file import SqliteEngine
from ragmemory.types.writes import Embedding
from tests.support.memories import (
    FOX,
    PIE,
    SwitchableEmbedder,
    backup_of,
    put,
    restore,
    service_for,
    settings_for,
    uris,
)
from tests.support.stores import SQLITE_ONLY


@pytest.mark.parametrize("kind", ["local", "fastembed"])
def test_the_memories_of_a_process_share_the_model_of_their_embedder(tmp_path: Path, kind: str) -> None:
    one, other = (settings_for(tmp_path / name, embedder__kind=kind) for name in ("one", "other"))
    other.home = one.home
    assert make_embedder(one) is make_embedder(other)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no open file")
async def test_a_memory_that_is_replaced_while_it_is_served_is_reopened(tmp_path: Path) -> None:
    copy = await backup_of(tmp_path)
    async with service_for(tmp_path) as memory:
        assert set(await uris(memory, "fox apple pie")) == {"fox", "pie"}
        await put(memory, "# Lost", uri="lost")
        restore(copy, tmp_path / "memory.db")
        assert await uris(memory, "fox apple pie") == ["fox"]
        await put(memory, PIE, uri="again")
        assert (await uris(memory, "apple pie"))[0] == "again"
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT uri FROM documents ORDER BY number").fetchall() == [
            ("fox",),
            ("again",),
        ]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows deletes no open file")
@SQLITE_ONLY
async def test_a_memory_that_is_deleted_while_it_is_served_starts_empty(
    tmp_path: Path, memory: MemoryService
) -> None:
    await put(memory, FOX, uri="fox")
    for name in ("memory.db", "memory.db-wal", "memory.db-shm"):
        (tmp_path / name).unlink()
    assert (await memory.search.query("fox", 8)).hits == []
    assert (await put(memory, FOX, uri="fox")).status == "added"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no open file")
@SQLITE_ONLY
async def test_a_write_during_which_the_memory_becomes_unusable_fails_and_the_memory_comes_back(
    tmp_path: Path, memory: MemoryService, embedder: SwitchableEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(memory, FOX, uri="fox")
    path, embed = tmp_path / "memory.db", embedder.embed_documents
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # The file alone will be moved.

    async def embed_while_it_becomes_unusable(texts: list[str], titles: list[str]) -> list[Embedding]:
        path.rename(tmp_path / "away")
        path.write_text("no database " * 99, encoding="utf-8")
        with pytest.raises(NotAMemory):
            await memory.search.query("fox", 8)
        return await embed(texts, titles)

    with monkeypatch.context() as patch:
        patch.setattr(embedder, "embed_documents", embed_while_it_becomes_unusable)
        with pytest.raises(NotAMemory):
            await put(memory, PIE, uri="pie")
    (tmp_path / "away").replace(path)
    assert await uris(memory, "fox apple pie") == ["fox"]
    assert (await put(memory, PIE, uri="pie")).status == "added"


async def test_what_cannot_be_opened_fails_every_call(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_text("no database " * 100, encoding="utf-8")
    async with service_for(tmp_path) as memory:
        for _ in range(2):
            with pytest.raises(NotAMemory):
                await memory.warm_up()
            with pytest.raises(NotAMemory):
                await memory.search.query("fox", 8)
            with pytest.raises(NotAMemory):
                await put(memory, FOX)


async def test_a_memory_that_is_just_being_opened_when_the_service_ends_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, open_engine = anyio.Event(), SqliteEngine._open

    async def opened_after_the_end(engine: SqliteEngine) -> None:
        begun.set()
        with anyio.CancelScope(shield=True):
            await ended.wait()
        await open_engine(engine)

    async def keep(*, task_status: TaskStatus[MemoryService]) -> None:
        async with service_for(tmp_path) as memory:
            task_status.started(memory)
            await anyio.sleep_forever()

    monkeypatch.setattr(SqliteEngine, "_open", opened_after_the_end)
    ended = anyio.Event()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            memory = await tasks.start(keep)
            tasks.start_soon(memory.warm_up)
            await begun.wait()
            tasks.cancel_scope.cancel()
            ended.set()
    assert connection_threads() == []


@pytest.mark.parametrize(
    "failing", [(SwitchableEmbedder, "aclose"), (IndexSync, "close")], ids=["embedder", "index"]
)
async def test_the_memory_is_closed_even_if_closing_something_else_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: tuple[type, str]
) -> None:
    async def fail(_: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(*failing, fail)
    with pytest.raises(ValueError, match="broken"):
        async with service_for(tmp_path) as memory:
            await put(memory, FOX)
    assert connection_threads() == []


def connection_threads() -> list[str]:
    """Of files that are still open: one that is left would keep the program from ending."""
    threads = [thread for thread in threading.enumerate() if "connection_worker" in thread.name]
    for thread in threads:
        thread.join(2)  # It answers for the last time just before it ends.
    return [thread.name for thread in threads if thread.is_alive()]


async def test_an_embedder_that_cannot_be_made_ready_fails_those_who_need_it_and_not_the_memory(
    memory: MemoryService, embedder: SwitchableEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = threading.Event()

    def fail() -> None:
        tried.set()
        raise TypeError("damaged")

    monkeypatch.setattr(embedder, "warm_up", fail)
    await memory.maintenance.stats()
    await to_thread.run_sync(tried.wait, 10)
    await anyio.wait_all_tasks_blocked()
    assert (await put(memory, FOX)).status == "added"


async def test_a_memory_that_is_not_open_says_so(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "notes.db")
    for reason in ("only open in `async with", "has been closed"):
        with anyio.fail_after(10):
            with pytest.raises(MemoryUnusable, match=reason):
                await memory.inject("text")
            with pytest.raises(MemoryUnusable, match=reason):
                await memory.query("text")
            if reason.startswith("only"):
                async with memory:
                    await memory.inject("text")


async def test_a_memory_is_opened_once_and_closed_after_that(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "notes.db")
    with pytest.raises(MemoryUnusable, match="only open in `async with") as caught:
        await memory.__aexit__(None, None, None)
    assert caught.value.hint == ""
    async with memory:
        with pytest.raises(MemoryUnusable, match="only once"):
            await memory.__aenter__()
        await memory.inject("The fox jumps.", {"uri": "fox"})
        assert [hit.uri for hit in (await memory.query("fox")).hits] == ["fox"]
    with pytest.raises(MemoryUnusable, match="only once"):
        await memory.__aenter__()
    await memory.__aexit__(None, None, None)


async def test_a_memory_used_in_another_event_loop_says_where_it_is_open(tmp_path: Path) -> None:
    async with Memory(tmp_path / "notes.db") as memory:
        for use in (partial(memory.query, "a"), partial(memory.inject, "a"), memory.__aexit__):
            with anyio.fail_after(60), pytest.raises(MemoryUnusable, match="open in another event loop"):
                await to_thread.run_sync(anyio.run, use)
        assert (await memory.inject("The fox jumps.")).status == "added"


def test_a_memory_whose_event_loop_has_ended_is_closed(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "notes.db")
    asyncio.run(memory.__aenter__())
    with pytest.raises(MemoryUnusable, match="has been closed"):
        asyncio.run(memory.query("fox"))
    asyncio.run(memory.__aexit__())
    assert connection_threads() == []


def test_a_memory_is_not_opened_without_asyncio(tmp_path: Path) -> None:
    with pytest.raises(AsyncioRequired):
        Memory(tmp_path / "notes.db").__aenter__().send(None)
    assert not (tmp_path / "notes.db").exists()


async def test_a_memory_that_an_error_has_closed_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise ValueError("broken")

    memory = Memory(tmp_path / "notes.db")
    monkeypatch.setattr(memory.service.follower, "run", fail)
    with anyio.fail_after(60):
        await memory.__aenter__()
        assert memory._serving is not None
        await asyncio.wait([memory._serving])
        for call in (memory.query, memory.inject):
            with pytest.raises(MemoryUnusable, match=r"closed by an error, ValueError\('broken'\)"):
                await call("text")
        with pytest.raises(ExceptionGroup):
            await memory.__aexit__(None, None, None)


@pytest.mark.parametrize(
    ("method", "arguments", "sentence"),
    [
        ("query", {"text": None}, "text must be of type str, not NoneType."),
        ("query", {"text": "a", "top_k": "3"}, "top_k must be of type int, not str."),
        ("query", {"text": "a", "top_k": 0}, "top_k is 0, which is less than 1."),
        ("query", {"text": "a", "filter": "b"}, "filter must be of type dict or None, not str."),
        ("query", {"text": "a", "min_score": 5}, "min_score is 5, which is not from 0 to 1."),
        ("inject", {"text": b"a"}, "text must be of type str, not bytes."),
        ("inject", {"text": "a", "metadata": "b"}, "metadata must be of type dict or None, not str."),
        ("inject", {"text": "a", "metadata": {5: 1}}, "metadata has the key 5, which is not a string."),
        ("query", {"text": "a", "filter": {5: 1}}, "filter has the key 5, which is not a string."),
        ("query", {"text": "\ud800"}, "text holds half a character, the lone surrogate U+D800."),
    ],
)
async def test_an_argument_of_the_wrong_type_is_named(
    tmp_path: Path, method: str, arguments: dict[str, Any], sentence: str
) -> None:
    async with Memory(tmp_path / "notes.db") as memory:
        with pytest.raises(BadArgument) as caught:
            await getattr(memory, method)(**arguments)
    assert str(caught.value) == sentence


def test_a_memory_needs_a_path() -> None:
    """An empty one, such as that of an unset variable, must not open the user's own memory."""
    with pytest.raises(BadArgument, match=r"^path is empty\.$"):
        Memory("")
    with pytest.raises(BadArgument, match=r"^path must be of type str or Path, not NoneType\.$"):
        Memory(None)  # type: ignore[arg-type]
    with pytest.raises(BadArgument, match=r"^path is ':memory:', but a memory is a file"):
        Memory(":memory:")


async def test_the_settings_of_a_memory_may_be_named_by_a_text(tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("[chunking]\nmax_tokens = 8\n", encoding="utf-8")
    async with Memory(tmp_path / "notes.db", config=str(settings)) as memory:
        assert (await memory.inject("One sentence here.\n\n" * 9)).chunks > 1
    with pytest.raises(BadArgument, match=r"^config must be of type str or Path or None, not bytes\.$"):
        Memory(tmp_path / "notes.db", config=b"a")  # type: ignore[arg-type]


async def test_metadata_and_a_filter_may_be_any_mapping(tmp_path: Path) -> None:
    async with Memory(tmp_path / "notes.db") as memory:
        await memory.inject("The fox jumps.", MappingProxyType({"uri": "fox", "tags": ["animal"]}))
        await memory.inject("The fox sleeps.", {"uri": "other"})
        found = await memory.query("fox", filter=MappingProxyType({"tags": ["animal"]}))
    assert [hit.uri for hit in found.hits] == ["fox"]


# `asyncio.run` would cancel the task of the memory, and so close it.
UNCLOSED = """
import asyncio, sys
from ragmemory import Memory

async def main():
    memory = await Memory(sys.argv[1]).__aenter__()
    print((await memory.inject("The fox jumps.", {"uri": "fox"})).status)
    await memory.query("fox")

asyncio.new_event_loop().run_until_complete(main())
"""


async def test_a_program_that_never_closes_its_memory_ends_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    with anyio.fail_after(60):
        done = await anyio.run_process([sys.executable, "-c", UNCLOSED, str(path)])
    assert done.stdout.split() == [b"added"]
    async with Memory(path) as memory:
        assert [hit.uri for hit in (await memory.query("fox")).hits] == ["fox"]


async def test_a_memory_can_be_opened_and_closed_in_different_tasks(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "notes.db")
    found: list[str] = []

    async def query() -> None:
        found.extend(hit.uri for hit in (await memory.query("fox")).hits)

    for cell in (
        memory.__aenter__,
        partial(memory.inject, "The fox jumps.", {"uri": "fox"}),
        query,
        partial(memory.__aexit__, None, None, None),
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cell)
    assert found == ["fox"]
    assert connection_threads() == []
    for use in (memory.query, memory.inject):
        with pytest.raises(MemoryUnusable, match="has been closed") as caught:
            await use("fox")
        assert caught.value.hint == ""  # Permissions are not the cause.


async def test_a_memory_whose_block_is_cancelled_is_closed(tmp_path: Path) -> None:
    begun = anyio.Event()

    async def use() -> None:
        async with Memory(tmp_path / "notes.db") as memory:
            await memory.inject("The fox jumps.")
            begun.set()
            await anyio.sleep_forever()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(use)
            await begun.wait()
            tasks.cancel_scope.cancel()
    assert connection_threads() == []


async def test_an_error_of_a_program_that_has_the_memory_open_is_raised_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match="is empty"):
        async with Memory(tmp_path / "notes.db") as memory:
            await memory.inject("")
    with pytest.raises(KeyError, match="mine"):
        async with Memory(tmp_path / "notes.db") as memory:
            raise KeyError("mine")
