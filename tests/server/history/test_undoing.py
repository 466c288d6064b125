"""Undo of a load as one and of chosen writes. Undo of the last write has a module of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ragcommon.contract.history import Origin
from ragmemory.errors import (
    BadArgument,
    EmbedderUnavailable,
    NotAWrite,
    NothingToUndo,
    NotUndoable,
    WrittenLater,
)
from ragmemory.service import MemoryService
from ragmemory.types.history import Selection
from tests.support.memories import ORIGIN, SwitchableEmbedder, service_for
from tests.support.stores import BOTH_ENGINES, sql

pytestmark = BOTH_ENGINES

FOX = "The quick brown fox jumps over the lazy dog."
PIE = "Bake the apple pie for forty minutes."
LOAD = replace(ORIGIN, group="load-1")


@pytest.fixture
def embedder() -> SwitchableEmbedder:
    return SwitchableEmbedder()


@pytest.fixture
async def memory(tmp_path: Path, embedder: SwitchableEmbedder) -> AsyncIterator[MemoryService]:
    with anyio.fail_after(60):
        async with service_for(tmp_path, embedder) as memory:
            yield memory


async def put(memory: MemoryService, text: str, uri: str) -> None:
    await memory.writer.inject(text, {"uri": uri}, ORIGIN)


async def load(memory: MemoryService, texts: Mapping[str, str], origin: Origin = LOAD) -> None:
    """Inject texts by their uris, at the same time."""
    async with anyio.create_task_group() as tasks:
        for uri, text in texts.items():
            tasks.start_soon(memory.writer.inject, text, {"uri": uri}, origin)


async def texts_in(memory: MemoryService) -> dict[str, str]:
    listed, _ = await memory.documents.page(1000)
    return {info.uri: (await memory.documents.read(info.uri))[1] for info in listed}


async def test_a_load_is_undone_as_one_and_counted(memory: MemoryService) -> None:
    before = {"other": "Another document.", **{f"old {n}": f"Old text {n}." for n in range(100)}}
    await load(memory, before, ORIGIN)
    await load(memory, {f"old {n}": f"New text {n}." for n in range(100)})
    await load(memory, {f"new {n}": f"Text {n}." for n in range(100)})
    await memory.writer.forget("other", LOAD)
    progress: list[tuple[int, int]] = []

    async def note(done: int, total: int) -> None:
        progress.append((done, total))

    undone = await memory.history.undo(ORIGIN, note)
    assert (undone.entry.action, undone.entry.uri, undone.entry.undone) == ("removed", "other", True)
    assert undone.writes == {"added": 100, "updated": 100, "removed": 1}
    assert undone.kept == []
    assert await texts_in(memory) == before
    assert (await memory.search.query("Text", 100, {"uri": "new*"})).hits == []
    assert progress[-1] == (201, 201)
    assert progress == sorted(progress)
    assert (await memory.history.undo(ORIGIN)).writes == {"added": 1}


async def test_the_same_document_twice_in_a_load_gets_its_first_text_back(memory: MemoryService) -> None:
    await put(memory, FOX, uri="page")
    for text in (PIE, "A third text."):
        await memory.writer.inject(text, {"uri": "page"}, LOAD)
    await memory.writer.forget("page", LOAD)
    undone = await memory.history.undo(ORIGIN)
    assert (undone.writes, undone.by_document) == ({"removed": 1, "updated": 2}, {"updated": 1})
    assert await texts_in(memory) == {"page": FOX}


async def test_undo_of_a_load_keeps_what_others_have_written_since_and_names_it(
    memory: MemoryService,
) -> None:
    await load(memory, {"one": FOX, "two": PIE})
    await put(memory, "Written by another program.", uri="one")
    await load(memory, {"three": "The load goes on."})
    undone = await memory.history.undo(ORIGIN)
    assert (undone.writes, undone.kept) == ({"added": 2}, ["one"])
    assert await texts_in(memory) == {"one": "Written by another program."}
    # Nothing is in the way of taking back the rest, step by step.
    assert (await memory.history.undo(ORIGIN)).entry.action == "updated"
    assert await texts_in(memory) == {"one": FOX}
    assert (await memory.history.undo(ORIGIN)).entry.action == "added"
    assert await texts_in(memory) == {}


async def test_a_load_is_undone_as_one_however_long_it_is(tmp_path: Path) -> None:
    old, new = ({f"{n}": f"{age} text {n}." for n in range(10)} for age in ("Old", "New"))
    async with service_for(tmp_path, undo_depth=2) as memory:
        await load(memory, old, ORIGIN)
        await put(memory, FOX, uri="fox")
        await put(memory, PIE, uri="fox")
        await load(memory, new)
        assert kept_texts(tmp_path) == sorted(old.values())
        # One of its writes is still among the last two, so all of its texts are kept.
        await put(memory, "Unrelated.", uri="unrelated")
        assert kept_texts(tmp_path) == sorted(old.values())
        await memory.history.undo(ORIGIN)
        assert (await memory.history.undo(ORIGIN)).writes == {"updated": 10}
        assert await texts_in(memory) == {**old, "fox": PIE}


async def test_a_load_beyond_the_depth_is_refused_whole(tmp_path: Path) -> None:
    async with service_for(tmp_path, undo_depth=1) as memory:
        await put(memory, FOX, uri="fox")
        await load(memory, {"fox": PIE, "new": "New."})
    async with service_for(tmp_path, undo_depth=0) as memory:
        await put(memory, "Unrelated.", uri="unrelated")
        await memory.history.undo(ORIGIN)
        with pytest.raises(NotUndoable, match=r"\(fox was updated\)"):
            await memory.history.undo(ORIGIN)
        assert await texts_in(memory) == {"fox": PIE, "new": "New."}
        assert kept_texts(tmp_path) == []


async def test_a_load_whose_undo_is_cut_short_is_undone_by_the_next(
    memory: MemoryService, embedder: SwitchableEmbedder
) -> None:
    before = {f"{n:03}": f"Old text {n}." for n in range(200)}
    await load(memory, before, ORIGIN)
    await load(memory, {uri: f"New {text}" for uri, text in before.items()})

    async def fail(*_: int) -> None:
        embedder.is_down = True

    with pytest.raises(EmbedderUnavailable):
        await memory.history.undo(ORIGIN, fail)
    there = await texts_in(memory)
    assert 0 < sum(there[uri] == before[uri] for uri in before) < 200
    embedder.is_down = False
    with anyio.CancelScope() as scope:

        async def cancel(*_: int) -> None:
            scope.cancel()

        await memory.history.undo(ORIGIN, cancel)
    await memory.history.undo(ORIGIN)
    assert await texts_in(memory) == before
    assert (await memory.maintenance.verify(ignore)).ok


async def test_writes_are_undone_by_their_numbers(memory: MemoryService) -> None:
    await put(memory, FOX, uri="fox")
    await put(memory, PIE, uri="pie")
    await put(memory, "Another fox.", uri="fox")
    await put(memory, "Another pie.", uri="pie")
    undone = await memory.history.undo(ORIGIN, selection=Selection([2, 4]))
    assert (undone.writes, undone.kept) == ({"updated": 1, "added": 1}, [])
    assert await texts_in(memory) == {"fox": "Another fox."}
    with pytest.raises(NothingToUndo):
        await memory.history.undo(ORIGIN, selection=Selection([2, 4]))
    # As a resumed undo: what is undone already is left out.
    assert (await memory.history.undo(ORIGIN, selection=Selection([1, 2, 3]))).writes == {
        "updated": 1,
        "added": 1,
    }
    assert await texts_in(memory) == {}
    for number in (5, 99):  # an undo, and no entry
        with pytest.raises(NotAWrite, match=f"There is no write {number} in the journal"):
            await memory.history.undo(ORIGIN, selection=Selection([number]))


async def test_a_write_of_a_document_that_was_written_again_is_refused_by_name(memory: MemoryService) -> None:
    for text in (FOX, PIE, "Third."):
        await put(memory, text, uri="page")
    await put(memory, FOX, uri="fox")
    with pytest.raises(WrittenLater, match="written again later: page"):
        await memory.history.undo(ORIGIN, selection=Selection([2, 4]))
    assert await texts_in(memory) == {"page": "Third.", "fox": FOX}
    await memory.history.undo(ORIGIN, selection=Selection([2, 3, 4]))
    assert await texts_in(memory) == {"page": FOX}


async def test_the_writes_of_a_client_or_session_since_a_time_are_undone(memory: MemoryService) -> None:
    cline, codex = Origin("cline", "monday"), Origin("codex", "tuesday")
    await memory.writer.inject(FOX, {"uri": "fox"}, cline)
    await memory.writer.inject(PIE, {"uri": "pie"}, codex)
    await memory.writer.inject("A third text.", {"uri": "page"}, cline)
    await memory.writer.inject("A third text, changed.", {"uri": "page"}, codex)
    undone = await memory.history.undo(ORIGIN, selection=Selection(origin="cline", since="1h"))
    assert (undone.writes, undone.kept) == ({"added": 1}, ["page"])
    with pytest.raises(WrittenLater, match="page"):
        await memory.history.undo(ORIGIN, selection=Selection(origin="monday"))
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    for nothing in (
        Selection(since=later),
        Selection(origin="nobody"),
        Selection(origin="cline", since=later),
    ):
        with pytest.raises(NothingToUndo):
            await memory.history.undo(ORIGIN, selection=nothing)
    assert (await memory.history.undo(ORIGIN, selection=Selection(origin="tuesday"))).writes == {
        "updated": 1,
        "added": 1,
    }
    assert await texts_in(memory) == {"page": "A third text."}
    assert (await memory.history.undo(ORIGIN, selection=Selection(since="1d"))).writes == {"added": 1}


async def test_the_writes_of_a_group_are_undone_by_its_name(memory: MemoryService) -> None:
    for uri in ("fox", "pie"):
        await memory.writer.inject(FOX, {"uri": uri}, Origin("ragchat", group="0a1b2c3d"))
    await memory.writer.inject(PIE, {"uri": "later"}, Origin("ragchat"))
    undone = await memory.history.undo(ORIGIN, selection=Selection(origin="0a1b2c3d"))
    assert undone.writes == {"added": 2}
    assert await texts_in(memory) == {"later": PIE}


async def test_what_is_no_time_is_refused(memory: MemoryService) -> None:
    for wrong in ("yesterday", "9" * 50 + "d"):
        with pytest.raises(BadArgument, match="since is neither a time in ISO 8601 nor a time ago"):
            await memory.history.undo(ORIGIN, selection=Selection(since=wrong))


async def ignore(*_: object) -> None:
    """Reports no progress."""


def kept_texts(folder: Path) -> list[str]:
    """The earlier texts in the journal, sorted."""
    rows = sql(folder / "memory.db", "SELECT before_text FROM journal WHERE before_text IS NOT NULL")
    return sorted(row[0] for row in rows)


# Who writes what; None removes the document.
histories = st.lists(
    st.tuples(
        st.sampled_from(["cline", "codex"]),
        st.sampled_from(["fox", "pie"]),
        st.sampled_from(["one", "two", None]),
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=max(5, settings().max_examples // 5))
@given(histories)
def test_undo_of_what_one_client_wrote_in_a_random_history_gives_the_state_without_it(
    history: list[tuple[str, str, str | None]],
) -> None:
    async def play(folder: Path) -> None:
        writes: dict[str, list[tuple[str, str | None]]] = {"fox": [], "pie": []}
        with anyio.fail_after(30):
            async with service_for(folder) as memory:
                for client, uri, text in history:
                    before = writes[uri][-1][1] if writes[uri] else None
                    if text is not None:
                        await memory.writer.inject(text, {"uri": uri}, Origin(client))
                    elif before is not None:
                        await memory.writer.forget(uri, Origin(client))
                    if text != before:
                        writes[uri].append((client, text))
                # Undone are the last writes of a document, up to one by the other client.
                for of_one in writes.values():
                    while of_one and of_one[-1][0] == "cline":
                        of_one.pop()
                with suppress(NothingToUndo, WrittenLater):
                    await memory.history.undo(ORIGIN, selection=Selection(origin="cline"))
                texts = {uri: of_one[-1][1] for uri, of_one in writes.items() if of_one}
                assert await texts_in(memory) == {uri: text for uri, text in texts.items() if text}
                with suppress(NothingToUndo):
                    await memory.history.undo(ORIGIN, selection=Selection(since="1d"))
                assert await texts_in(memory) == {}

    with TemporaryDirectory() as folder:
        anyio.run(play, Path(folder))
