from __future__ import annotations

from pathlib import Path

import anyio
import anyio.lowlevel

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
