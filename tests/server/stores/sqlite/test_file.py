from __future__ import annotations

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from ragcommon.sqlite.readonly import Readable, readable
from ragmemory.stores.sqlite import file
from ragmemory.stores.sqlite.file import ReadersWriterLock
from tests.support.memories import EMBEDDER, write_of
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
