"""The journal of writes, and what it keeps for undo."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from ragcommon.contract.documents import Injected
from ragmemory.errors import (
    UndoConflict,
)
from ragmemory.stores.store import Store
from ragmemory.types.history import Previous, Selection
from tests.support.memories import EMBEDDER, ORIGIN, before_last_write, write_of
from tests.support.stores import BOTH_ENGINES, SQLITE_ONLY, opened, put, sql

pytestmark = BOTH_ENGINES


async def test_every_write_is_in_the_journal_with_its_origin(store: Store) -> None:
    await put(store, "one")
    await put(store, "one")
    await put(store, "two")
    await store.remove({"doc": None}, ORIGIN)
    entries = await store.journal.entries(10)
    assert [(entry.seq, entry.action, entry.uri) for entry in entries] == [
        (3, "removed", "doc"),
        (2, "updated", "doc"),
        (1, "added", "doc"),
    ]
    assert {(entry.origin.client, entry.origin.session) for entry in entries} == {("tests", "session-1")}
    assert entries == sorted(entries, key=lambda entry: entry.at, reverse=True)
    assert len(await store.journal.entries(2)) == 2


async def test_the_journal_keeps_what_undo_needs(store: Store) -> None:
    assert await store.journal.change(Selection()) == ([], [])
    await put(store, "one", year=1)
    [added], _ = await store.journal.change(Selection())
    assert await store.versions.before_writes([added.seq]) == {}
    added_at = (await store.documents.find("doc")).added_at
    await put(store, "two", year=2)
    assert await before_last_write(store) == Previous("one", {"uri": "doc", "year": 1}, added_at)


def kept(store: Store) -> list[str | None]:
    """The texts that the journal keeps, line by line."""
    return [row[0] for row in sql(store.path, "SELECT before_text FROM journal ORDER BY seq")]


async def test_texts_beyond_the_depth_are_not_kept(tmp_path: Path) -> None:
    async with opened(tmp_path / "m.db", undo_depth=2) as store:
        for text in ("one", "two", "three"):
            await put(store, text)
        await store.remove({"doc": None}, ORIGIN)
        assert kept(store) == [None, None, "two", "three"]
        assert len(await store.journal.entries(10)) == 4


async def test_neither_an_undo_nor_an_undone_write_uses_up_the_depth(tmp_path: Path) -> None:
    async with opened(tmp_path / "m.db", undo_depth=2) as store:
        for text in ("one", "two", "three"):
            await put(store, text)
        texts = [None, "one", "two"]
        for undone, text in ((3, "three"), (5, "other text"), (7, "other text")):
            undo = replace(write_of("two", {"uri": "doc"}), undoes=undone)
            assert all(isinstance(outcome, Injected) for outcome in await store.write([undo], EMBEDDER))
            await put(store, "other text")
            texts += [text, "two"]
            assert kept(store) == texts


async def test_an_undo_keeps_no_text_without_a_depth(tmp_path: Path) -> None:
    async with opened(tmp_path / "m.db") as store:
        await put(store, "one")
        await put(store, "a secret")
    async with opened(tmp_path / "m.db", undo_depth=0) as store:
        await store.write([replace(write_of("one", {"uri": "doc"}), undoes=2)], EMBEDDER)
        assert kept(store) == [None, "one", None]


async def test_with_a_depth_of_0_no_text_is_kept(tmp_path: Path) -> None:
    async with opened(tmp_path / "m.db", undo_depth=0) as store:
        await put(store, "a secret")
        await put(store, "another secret")
        await store.remove({"doc": None}, ORIGIN)
        assert kept(store) == [None] * 3


async def test_only_the_last_write_to_a_document_can_be_undone(store: Store) -> None:
    await put(store, "one")
    await put(store, "two")
    await put(store, "other", "other")
    with pytest.raises(UndoConflict):
        await store.remove({"other": 3, "doc": 1}, ORIGIN)
    assert (await store.stats()).documents == 2
    await store.remove({"other": 3}, ORIGIN)
    entries = await store.journal.entries(10)
    assert [(entry.action, entry.undone) for entry in entries] == [
        ("restored", False),
        ("added", True),
        ("updated", False),
        ("added", False),
    ]
    with pytest.raises(UndoConflict):
        await store.remove({"other": 3}, ORIGIN)


async def test_an_undo_that_comes_too_late_fails_alone(store: Store) -> None:
    await put(store, "one")
    await put(store, "two")
    await put(store, "three")
    late = replace(write_of("one", {"uri": "doc"}), undoes=2)
    conflict, added = await store.write([late, write_of("new", {"uri": "new"})], EMBEDDER)
    assert isinstance(conflict, UndoConflict)
    assert isinstance(added, Injected)
    assert [entry.action for entry in await store.journal.entries(10)] == [
        "added",
        "updated",
        "updated",
        "added",
    ]
    assert (await store.documents.read("doc"))[1] == "three"


@SQLITE_ONLY
async def test_undoing_an_addition_that_was_removed_already_succeeds(store: Store) -> None:
    # As an earlier release left it, which took an update whose text was dropped for an addition.
    await put(store, "one")
    await store.remove({"doc": None}, ORIGIN)
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("UPDATE journal SET undone = 1 WHERE seq = 2")
        connection.commit()
    assert await store.remove({"doc": 1}, ORIGIN) == []
    assert await store.journal.change(Selection()) == ([], [])
    with pytest.raises(UndoConflict):
        await store.remove({"doc": 1}, ORIGIN)
