"""Hidden documents are removed in the background."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import pytest

from ragmemory.stores.hidden import HiddenStore
from tests.support.memories import (
    LONG,
    GatedEmbedder,
    put,
    service_for,
)
from tests.support.stores import BOTH_ENGINES, sql

pytestmark = BOTH_ENGINES


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch) -> anyio.Event:
    """Set when a sweep that has removed something finds nothing more."""
    swept, sweep, removed = anyio.Event(), HiddenStore.sweep, 0

    async def counting_sweep(store: HiddenStore) -> bool:
        nonlocal removed
        has_removed = await sweep(store)
        removed += has_removed
        if removed and not has_removed:
            swept.set()
        return has_removed

    monkeypatch.setattr(HiddenStore, "sweep", counting_sweep)
    return swept


def chunks_in(folder: Path) -> int:
    """The chunks in the memory, hidden ones as well."""
    [(count,)] = sql(folder / "memory.db", "SELECT count(*) FROM chunks")
    return int(count)


async def test_what_a_cancelled_load_has_written_is_swept_without_another_write(
    tmp_path: Path, swept: anyio.Event
) -> None:
    embedder = GatedEmbedder()
    with anyio.fail_after(60):
        async with service_for(tmp_path, embedder) as memory:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(put, memory, LONG, uri="doc"))
                await embedder.reached.wait()
                tasks.cancel_scope.cancel()
            await swept.wait()
    assert chunks_in(tmp_path) == 0


async def test_what_a_killed_process_left_is_swept_once_the_memory_is_opened_again(
    tmp_path: Path, swept: anyio.Event
) -> None:
    with anyio.fail_after(60):
        async with service_for(tmp_path) as memory:
            await put(memory, LONG, uri="doc")
        path = tmp_path / "memory.db"
        sql(path, "UPDATE documents SET hidden = 1, updated_at = '2020-01-01T00:00:00.000+00:00'")
        sql(path, "DELETE FROM journal")
        async with service_for(tmp_path) as memory:
            assert (await memory.maintenance.stats()).documents == 0
            await swept.wait()
    assert chunks_in(tmp_path) == 0
