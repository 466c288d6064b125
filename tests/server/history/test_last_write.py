"""Undo of the last write, and what was forgotten comes back."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import anyio
import msgspec
import pytest

from ragmemory.errors import (
    DocumentNotFound,
    MemoryDamaged,
    NothingToUndo,
    NotUndoable,
    UndoConflict,
)
from ragmemory.ingest.documents import document_id
from ragmemory.service import MemoryService
from tests.support.memories import (
    FOX,
    ORIGIN,
    PIE,
    SwitchableEmbedder,
    put,
    service_for,
    uris,
)
from tests.support.stores import BOTH_ENGINES, SQLITE_ONLY

pytestmark = BOTH_ENGINES


async def test_a_forgotten_document_is_found_no_more(memory: MemoryService) -> None:
    injected = await put(memory, FOX, uri="fox")
    forgotten = await memory.writer.forget(injected.document_id, ORIGIN)
    assert (forgotten.uri, forgotten.chunks) == ("fox", 1)
    assert await uris(memory, "fox") == []
    with pytest.raises(DocumentNotFound):
        await memory.writer.forget("fox", ORIGIN)


async def test_undo_walks_back_write_by_write(memory: MemoryService) -> None:
    await put(memory, FOX, uri="page", tags=["one"])
    added_at = (await memory.documents.read("page"))[0].added_at
    await put(memory, PIE, uri="page", tags=["two"])
    await memory.writer.forget("page", ORIGIN)

    assert (await memory.history.undo(ORIGIN)).entry.action == "removed"
    info, text = await memory.documents.read("page")
    assert (text, info.metadata["tags"], info.added_at) == (PIE, ["two"], added_at)
    assert await uris(memory, "apple pie") == ["page"]

    undone = (await memory.history.undo(ORIGIN)).entry
    assert (undone.action, undone.undone) == ("updated", True)
    info, text = await memory.documents.read("page")
    assert (text, info.metadata["tags"]) == (FOX, ["one"])

    assert (await memory.history.undo(ORIGIN)).entry.action == "added"
    assert (await memory.maintenance.stats()).documents == 0
    with pytest.raises(NothingToUndo):
        await memory.history.undo(ORIGIN)
    assert [entry.action for entry in await memory.history.journal(10)] == ["restored"] * 3 + [
        "removed",
        "updated",
        "added",
    ]


async def test_undo_of_new_metadata_brings_the_old_back_without_embedding(
    memory: MemoryService, embedder: SwitchableEmbedder
) -> None:
    await put(memory, FOX, uri="fox", year=1)
    await put(memory, FOX, uri="fox", year=2)
    embedder.is_down = True
    await memory.history.undo(ORIGIN)
    assert (await memory.documents.read("fox"))[0].metadata["year"] == 1


async def test_what_was_undone_can_be_injected_again(memory: MemoryService) -> None:
    await put(memory, FOX, uri="fox")
    await memory.history.undo(ORIGIN)
    assert (await put(memory, FOX, uri="fox")).status == "added"
    assert await uris(memory, "fox") == ["fox"]


@SQLITE_ONLY
async def test_undo_never_removes_a_document_whose_earlier_text_is_no_longer_kept(
    tmp_path: Path, memory: MemoryService
) -> None:
    for text in ("version one", "version two", "version three"):
        await put(memory, text, uri="thesis.txt")
    async with service_for(tmp_path, undo_depth=1) as shallow:
        await put(shallow, FOX, uri="fox")
    assert (await memory.history.undo(ORIGIN)).entry.uri == "fox"
    for _ in range(2):
        with pytest.raises(NotUndoable, match=r"Entry 3 .*\(thesis\.txt was updated"):
            await memory.history.undo(ORIGIN)
    assert (await memory.documents.read("thesis.txt"))[1] == "version three"
    # What comes after it can be taken back.
    await put(memory, "version four", uri="thesis.txt")
    assert (await memory.history.undo(ORIGIN)).entry.action == "updated"
    assert (await memory.documents.read("thesis.txt"))[1] == "version three"


@SQLITE_ONLY
async def test_undo_from_a_damaged_entry_of_the_journal_says_so_and_changes_nothing(
    tmp_path: Path, memory: MemoryService
) -> None:
    await put(memory, FOX, uri="fox")
    await memory.writer.forget("fox", ORIGIN)
    for damaged in ("{", "3"):
        with closing(sqlite3.connect(tmp_path / "memory.db")) as other, other:
            other.execute("UPDATE journal SET before_metadata = ? WHERE seq = 2", [damaged])
        with pytest.raises(MemoryDamaged, match="at entry 2 of the journal"):
            await memory.history.undo(ORIGIN)
    assert [entry.undone for entry in await memory.history.journal(10)] == [False, False]


async def test_with_no_texts_kept_undo_takes_back_additions_alone(tmp_path: Path) -> None:
    async with service_for(tmp_path, undo_depth=0) as memory:
        await put(memory, FOX, uri="fox")
        await put(memory, PIE, uri="pie")
        await memory.writer.forget("pie", ORIGIN)
        with pytest.raises(NotUndoable, match=r"Entry 3 .*\(pie was removed"):
            await memory.history.undo(ORIGIN)
        await put(memory, PIE, uri="pie")
        assert (await memory.history.undo(ORIGIN)).entry.action == "added"
        assert [document.uri for document in (await memory.documents.page(10))[0]] == ["fox"]


async def test_undoing_does_not_use_up_the_depth(tmp_path: Path) -> None:
    async with service_for(tmp_path, undo_depth=3) as memory:
        for number in range(4):
            await put(memory, f"version {number}", uri="page")
        for _ in range(5):
            await put(memory, "another version", uri="page")
            await memory.history.undo(ORIGIN)
            assert (await memory.documents.read("page"))[1] == "version 3"
        # The five that were undone pushed one text out, the oldest: they were writes when they were made.
        for number in (2, 1):
            await memory.history.undo(ORIGIN)
            assert (await memory.documents.read("page"))[1] == f"version {number}"
        with pytest.raises(NotUndoable):
            await memory.history.undo(ORIGIN)


async def test_two_that_undo_at_once_take_back_two_writes_or_one_is_refused(
    tmp_path: Path, memory: MemoryService
) -> None:
    for number in range(6):
        await put(memory, f"version {number}", uri="page")
    done = 0

    async def undo(service: MemoryService) -> None:
        nonlocal done
        with suppress(UndoConflict):
            await service.history.undo(ORIGIN)
            done += 1

    async with service_for(tmp_path) as other:
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(undo, memory)
                tasks.start_soon(undo, other)
    assert done >= 2
    assert (await memory.documents.read("page"))[1] == f"version {5 - done}"
    assert sum(entry.undone for entry in await memory.history.journal(100)) == done


@SQLITE_ONLY
async def test_a_uri_that_is_refused_today_can_be_forgotten_and_brought_back(
    tmp_path: Path, memory: MemoryService
) -> None:
    await put(memory, FOX, uri="a-b")
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        odd = {"uri": "a\0b", "old": document_id("a-b"), "id": document_id("a\0b")}
        for table in ("documents", "journal"):
            connection.execute(
                f"UPDATE {table} SET uri = :uri, document_id = :id WHERE document_id = :old", odd
            )
        metadata = msgspec.json.encode({"uri": "a\0b"}).decode()
        connection.execute("UPDATE documents SET metadata = ?", [metadata])
        connection.commit()
    await memory.writer.forget("a\0b", ORIGIN)
    assert (await memory.maintenance.stats()).documents == 0
    assert (await memory.history.undo(ORIGIN)).entry.action == "removed"
    assert await uris(memory, "fox") == ["a\0b"]
    assert (await memory.history.undo(ORIGIN)).entry.action == "added"
    assert (await memory.maintenance.stats()).documents == 0
