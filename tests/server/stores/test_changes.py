"""What an index reads to follow the store."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from ragmemory.stores.store import Store
from ragmemory.types.changes import Changes, Checkpoint
from tests.support.memories import EMBEDDER, ORIGIN, write_of
from tests.support.stores import BOTH_ENGINES, SQLITE_ONLY, opened, put, sql

pytestmark = BOTH_ENGINES


async def test_a_chunk_whose_embedding_is_lost_or_cut_off_is_like_no_text_to_the_vectors(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.db"
    async with opened(path) as store:
        await store.write([write_of("a" * 60, {"uri": "doc"}, size=20)], EMBEDDER)
        sql(path, "UPDATE embeddings SET vector = ? WHERE chunk_id = 1", b"\1\2")
        sql(path, "DELETE FROM embeddings WHERE chunk_id = 2")
        sql(path, "UPDATE embeddings SET vector = ? WHERE chunk_id = 3", b"\1\2\3\4")
        changes = await store.changes.since(Checkpoint(), 10)
    assert changes.embeddings == [bytes(4), bytes(4), b"\1\2\3\4"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no open file")
@SQLITE_ONLY
async def test_changes_come_from_one_file_even_if_another_takes_its_place(
    tmp_path: Path, store: Store
) -> None:
    await put(store, "one")
    async with opened(tmp_path / "other.db") as other:
        await put(other, "two", "a")
        await put(other, "three", "b")
    changes: list[Changes] = []

    async def follow() -> None:
        changes.append(await store.changes.since(Checkpoint(), 100))

    for turns in range(12):
        (tmp_path / "away.db").unlink(missing_ok=True)
        store.path.rename(tmp_path / "away.db")
        (tmp_path / "other.db").rename(store.path)
        (tmp_path / "away.db").rename(tmp_path / "other.db")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
            tasks.start_soon(store.engine.ensure_open)
    # What the first file holds only in its write-ahead log does not move with it.
    assert {(len(one.chunk_ids), one.checkpoint.entry) for one in changes} <= {(2, 2), (1, 1), (0, 0)}


async def test_changes_come_in_pages_and_hold_what_an_index_needs(store: Store) -> None:
    await put(store, "a" * 20 + "b" * 20 + "c" * 5, title="T")
    first = await store.changes.since(Checkpoint(), 2)
    assert (first.chunk_ids, first.titles, first.headings) == ([1, 2], ["T", "T"], ["Heading", "Heading"])
    [entry] = await store.journal.entries(1)
    assert (first.texts, first.checkpoint) == (["a" * 20, "b" * 20], Checkpoint(2, 0, 1, entry.at))
    assert (await store.changes.since(Checkpoint(), 3)).first(2) == first
    assert first.fingerprint == (await store.changes.source())[0]
    second = await store.changes.since(first.checkpoint, 2)
    assert (second.chunk_ids, second.checkpoint) == ([3], Checkpoint(3, 0, 1, entry.at))
    assert second.embeddings[0] == b"\0" * 4


async def test_removed_chunks_are_reported_and_their_ids_never_come_back(store: Store) -> None:
    await put(store, "one")
    checkpoint = (await store.changes.since(Checkpoint(), 10)).checkpoint
    await store.remove({"doc": None}, ORIGIN)
    changes = await store.changes.since(checkpoint, 10)
    assert (changes.chunk_ids, changes.removed) == ([], [1])
    assert (changes.checkpoint.chunk_id, changes.checkpoint.removal, changes.checkpoint.entry) == (1, 1, 2)
    await put(store, "again")
    assert (await store.changes.since(changes.checkpoint, 10)).chunk_ids == [2]


async def test_the_version_changes_with_every_commit_of_anybody(tmp_path: Path) -> None:
    async with opened(tmp_path / "m.db") as one, opened(tmp_path / "m.db") as two:
        before = await two.engine.version()
        assert await two.engine.version() == before
        await put(one, "text")
        between = await two.engine.version()
        assert between != before
        await put(two, "other", "b")
        assert await two.engine.version() != between
