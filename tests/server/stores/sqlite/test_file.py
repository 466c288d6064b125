from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import anyio
import anyio.lowlevel
import pytest

from ragcommon.sqlite.readonly import Readable, readable
from ragmemory.errors import MemoryUnusable
from ragmemory.search.index.folder import MANIFEST
from ragmemory.stores.sqlite import connection, file
from ragmemory.stores.sqlite.file import ReadersWriterLock
from tests.server.stores.sqlite.test_backup import ignore
from tests.support.memories import EMBEDDER, put, service_for, write_of
from tests.support.stores import store_at


async def test_readers_that_wait_for_a_writer_all_go_on() -> None:
    lock, order = ReadersWriterLock(), list[str]()

    async def read(name: str) -> None:
        async with lock.shared():
            order.append(name)

    async def write() -> None:
        async with lock.exclusive():
            order.append("second writer")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks, lock.exclusive():
            for name in ("a", "b", "c"):
                tasks.start_soon(read, name)
            tasks.start_soon(write)
            await anyio.lowlevel.checkpoint()
            order.append("first writer")
    assert order[:2] == ["first writer", "second writer"]
    assert sorted(order[2:]) == ["a", "b", "c"]


async def test_a_file_that_is_made_at_need_is_empty_until_the_first_write(tmp_path: Path) -> None:
    path = tmp_path / "made" / "memory.db"
    store = store_at(path, 5.0, 10, make=lambda: path.parent.mkdir())
    await store.engine.ensure_open()
    try:
        assert (await store.stats()).documents == 0
        assert not path.parent.exists()
        await store.write([write_of("A text.")], EMBEDDER)
        assert (await store.stats()).documents == 1
        assert path.exists()
    finally:
        await store.engine.close()


async def test_a_file_that_appears_while_its_absence_is_opened_is_read_at_the_next_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    other = store_at(path, 5.0, 10)

    def overtaken(path: Path, version: int) -> Readable:
        source = readable(path, version)
        monkeypatch.setattr(file, "readable", readable)
        anyio.from_thread.run(other.write, [write_of("A text.")], EMBEDDER)
        return source

    monkeypatch.setattr(file, "readable", overtaken)
    store = store_at(path, 5.0, 10, make=lambda: None)
    try:
        assert (await store.stats()).documents == 0
        assert (await store.stats()).documents == 1
    finally:
        await store.engine.close()
        await other.engine.close()


async def test_a_file_that_was_emptied_is_no_empty_memory(tmp_path: Path) -> None:
    path, index = tmp_path / "memory.db", tmp_path / "memory.db-index"
    async with service_for(tmp_path) as memory:
        await put(memory, "A text.")
    content = path.read_bytes()
    path.write_bytes(b"")
    async with service_for(tmp_path) as memory:
        uses = (memory.maintenance.verify(ignore), put(memory, "More."), memory.search.query("a", 1))
        for use in uses:
            with pytest.raises(MemoryUnusable, match="has been emptied") as error:
                await use
            assert str(index) in error.value.hint
        path.write_bytes(content)
        assert (await memory.maintenance.verify(ignore)).ok
        assert (await memory.search.query("text", 1)).hits
    path.write_bytes(b"")
    shutil.rmtree(index)
    async with service_for(tmp_path) as memory:
        assert (await memory.search.query("text", 1)).empty


async def test_a_file_that_is_created_during_the_check_does_not_look_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with service_for(tmp_path) as memory:
        await put(memory, "A text.")
    path, manifest = tmp_path / "memory.db", tmp_path / "memory.db-index" / MANIFEST
    path.unlink()

    def access(place: Path, mode: int) -> bool:
        found = os.access(place, mode)
        manifest.unlink()
        connection.create_file(path)
        return found

    monkeypatch.setattr(file, "os", SimpleNamespace(access=access, F_OK=os.F_OK))
    service_for(tmp_path).engine._check_not_emptied()  # type: ignore[attr-defined]


async def test_the_index_of_a_deleted_file_does_not_make_a_new_file_look_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with service_for(tmp_path) as memory:
        await put(memory, "A text.")
    (tmp_path / "memory.db").unlink()
    created: list[Path] = []

    def create(path: Path) -> None:
        connection.create_file(path)
        # Another process that opens it now finds a file without content.
        service_for(tmp_path).engine._check_not_emptied()  # type: ignore[attr-defined]
        created.append(path)

    monkeypatch.setattr(file, "connections", SimpleNamespace(**{**vars(connection), "create_file": create}))
    async with service_for(tmp_path) as memory:
        await put(memory, "Another text.")
    assert created == [tmp_path / "memory.db"]
