"""Blocks of documents in real memories. Covers `block_view` and `ragmemory.stores.outlines`."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from ragcommon.contract.documents import Injected
from ragcommon.contract.files import Ingestion
from ragcommon.contract.history import Origin
from ragmemory.app import make_service
from ragmemory.blocks.block_view import fulltext_words
from ragmemory.blocks.editor import BlockEditor, insertion, moved_places, removal, replacement
from ragmemory.errors import (
    BadArgument,
    BlockNotFound,
    DocumentExists,
    DocumentNotFound,
    EmbedderUnavailable,
    MemoryFull,
    NotWrittenBack,
    StaleVersion,
)
from ragmemory.service import MemoryService
from ragmemory.types.blocks import ShownBlock
from ragmemory.types.writes import Write
from tests.support.memories import ORIGIN, SwitchableEmbedder, service_for, settings_for

TEXT = "# Tea\n\nSteep it for two minutes.\n\n- green\n- black\n\n## Milk\n\nNone.\n"
URI = "note:tea"


@pytest.fixture
def embedder() -> SwitchableEmbedder:
    return SwitchableEmbedder()


@pytest.fixture
async def memory(tmp_path: Path, embedder: SwitchableEmbedder) -> AsyncIterator[MemoryService]:
    with anyio.fail_after(60):
        async with service_for(tmp_path, embedder, roots=[str(tmp_path)]) as memory:
            yield memory


@pytest.fixture
async def editor(memory: MemoryService) -> BlockEditor:
    await memory.writer.inject(TEXT, {"uri": URI}, ORIGIN)
    return memory.block_editor


async def text_of(memory: MemoryService, document: str = URI) -> str:
    return (await memory.documents.read(document))[1]


async def ids(editor: BlockEditor, document: str = URI) -> dict[str, str]:
    return {block.label: block.block_id for block in await editor.blocks(document)}


def files_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def load(memory: MemoryService, path: Path) -> Ingestion:
    ingestions = memory.ingestions
    job = await ingestions.start([str(path)], prune=False, origin=ORIGIN)
    return (await ingestions.status(job.job_id, wait_seconds=30))[0]


# Read


async def test_the_blocks_of_a_document_have_labels_lines_and_the_version(editor: BlockEditor) -> None:
    blocks = await editor.blocks(URI)
    assert [(one.number, one.label, one.kind, one.start_line, one.end_line, one.text) for one in blocks] == [
        (1, "1", "heading", 1, 10, "# Tea"),
        (2, "1.a", "paragraph", 3, 3, "Steep it for two minutes."),
        (3, "1.b", "list", 5, 6, ""),
        (4, "1.b.1", "item", 5, 5, "- green"),
        (5, "1.b.2", "item", 6, 6, "- black"),
        (6, "1.1", "heading", 8, 10, "## Milk"),
        (7, "1.1.a", "paragraph", 10, 10, "None."),
    ]
    assert {(one.uri, one.title, one.version) for one in blocks} == {(URI, "Tea", 1)}
    assert [one.label for one in await editor.blocks(URI, "1.b")] == ["1.b", "1.b.1", "1.b.2"]
    assert [one.label for one in await editor.blocks(URI, kind="paragraph")] == ["1.a", "1.1.a"]
    assert blocks[-1].heading == "Tea > Milk"


async def test_a_block_has_all_that_is_below_it(editor: BlockEditor) -> None:
    info, block = await editor.block(URI, "1.1")
    assert (info.uri, block.text) == (URI, "## Milk\n\nNone.")
    for name in (block.block_id, "#6", "1.1"):
        assert (await editor.block(URI, name))[1] == block
    with pytest.raises(BlockNotFound):
        await editor.block(URI, "9")
    with pytest.raises(DocumentNotFound):
        await editor.block("note:none", "1")


async def test_ids_are_completed(editor: BlockEditor) -> None:
    info, block = await editor.block(URI, "1.a")
    assert block.block_id in await editor.block_ids(info.document_id, block.block_id[:4])
    assert await editor.block_ids("none", "") == []


async def test_a_query_finds_blocks(editor: BlockEditor, memory: MemoryService) -> None:
    await memory.writer.inject("# Cars\n\nThe old van rusts.", {"uri": "note:[van]*"}, ORIGIN)
    blocks, notice = await editor.search("How long must tea steep?")
    assert (blocks[0].label, notice) == ("1.a", "")
    blocks, _ = await editor.search("rust", "note:[van]*")
    assert {one.uri for one in blocks} == {"note:[van]*"}
    assert {one.kind for one in (await editor.search("tea", URI, "item"))[0]} == {"item"}


async def labels_with(editor: BlockEditor, query: str, document: str = "") -> list[str]:
    return [block.label async for _, block in editor.containing(query, document)]


async def test_full_text_finds_the_blocks_with_all_words(editor: BlockEditor, memory: MemoryService) -> None:
    await memory.writer.inject("Grüner Tee, two-minute brew.", {"uri": "a"}, ORIGIN)
    assert await labels_with(editor, "STEEP minutes") == ["1.a"]
    assert await labels_with(editor, "tea none") == ["1.1.a"]
    assert await labels_with(editor, '"two minutes"') == ["1.a"]
    assert await labels_with(editor, '"minutes two"') == []
    assert await labels_with(editor, "gruner two_minute") == ["a"]
    assert await labels_with(editor, "two") == ["a", "1.a"]
    assert await labels_with(editor, "two", URI) == ["1.a"]
    with pytest.raises(BadArgument):
        await labels_with(editor, '" - "')


async def test_a_full_text_search_can_resume_after_every_block(
    editor: BlockEditor, memory: MemoryService
) -> None:
    for number in range(3):
        await memory.writer.inject("Tea.\n\nTea.\n\nNo.\n\nTea.", {"uri": f"t{number}"}, ORIGIN)
    found = [(at, block) async for at, block in editor.containing("tea")]
    assert len(found) == 10
    for number, (at, _) in enumerate(found):
        rest = [block async for _, block in editor.containing("tea", start=at)]
        assert rest == [block for _, block in found[number + 1 :]]


def test_text_is_folded_as_the_full_text_index_does() -> None:
    assert fulltext_words("Crème_brûlée, ÉTÉ-2") == " creme brulee ete 2 "
    assert fulltext_words("東京") == " 東 京 "


# Edit


async def test_an_edit_is_a_version_in_the_journal_and_can_be_undone(
    editor: BlockEditor, memory: MemoryService
) -> None:
    edited = await editor.edit(URI, 1, replacement("1.a", "Steep it well."), Origin("me", "s", "group"))
    assert (edited.status, edited.version, edited.removed, edited.file) == ("updated", 2, [], "")
    assert [(one.label, one.kind, one.start_line) for one in edited.blocks] == [("1.a", "paragraph", 3)]
    assert await text_of(memory) == TEXT.replace("for two minutes", "well")
    [entry, _] = await memory.history.journal(5)
    assert (entry.action, entry.origin) == ("updated", Origin("me", "s", "group"))
    assert [one.number for one in (await memory.history.versions(URI, 5)).versions] == [2, 1]
    assert (await editor.block(URI, "1.a"))[1].version == 2
    await memory.history.undo(ORIGIN)
    assert await text_of(memory) == TEXT
    assert (await editor.block(URI, "1.a"))[1].version == 1


async def test_a_document_whose_uri_names_no_file_is_edited(memory: MemoryService) -> None:
    uri = "file://[x/notes.md"
    await memory.writer.inject(TEXT, {"uri": uri}, ORIGIN)
    edited = await memory.block_editor.edit(uri, 1, replacement("#2", "Steep it for three minutes."), ORIGIN)
    assert (edited.uri, edited.status) == (uri, "updated")


async def test_an_edit_of_another_version_is_refused(editor: BlockEditor, memory: MemoryService) -> None:
    await editor.edit(URI, 1, insertion("Last."), ORIGIN)
    for version in (1, 3, 0):
        with pytest.raises(StaleVersion) as caught:
            await editor.edit(URI, version, removal("1.a"), ORIGIN)
        assert (caught.value.version, caught.value.current) == (version, 2)
    assert await text_of(memory) == TEXT + "\nLast.\n"


async def test_of_two_edits_at_the_same_time_one_is_refused(
    editor: BlockEditor, memory: MemoryService
) -> None:
    outcomes: list[str] = []

    async def edit(content: str) -> None:
        try:
            await editor.edit(URI, 1, replacement("1.a", content), ORIGIN)
            outcomes.append(content)
        except StaleVersion:
            outcomes.append("refused")

    async with anyio.create_task_group() as tasks:
        for content in ("One.", "Two.", "Three."):
            tasks.start_soon(edit, content)
    assert outcomes.count("refused") == 2
    [content] = [one for one in outcomes if one != "refused"]
    assert content in await text_of(memory)


async def test_an_edit_in_another_process_is_noticed(tmp_path: Path, editor: BlockEditor) -> None:
    async with service_for(tmp_path) as other:
        await other.block_editor.edit(URI, 1, replacement("1.a", "Other."), ORIGIN)
    with pytest.raises(StaleVersion):
        await editor.edit(URI, 1, replacement("1.a", "Mine."), ORIGIN)


async def test_an_edit_without_changes_writes_nothing(editor: BlockEditor, memory: MemoryService) -> None:
    edited = await editor.edit(URI, 1, replacement("1.a", "Steep it for two minutes."), ORIGIN)
    assert (edited.status, edited.version) == ("unchanged", 1)
    assert len(await memory.history.journal(5)) == 1


async def test_an_edit_that_cannot_be_embedded_changes_nothing(
    editor: BlockEditor, memory: MemoryService, embedder: SwitchableEmbedder, tmp_path: Path
) -> None:
    path = tmp_path / "a.md"
    path.write_text(TEXT, encoding="utf-8")
    await load(memory, path)
    version = (await editor.blocks(path.as_uri()))[0].version
    embedder.is_down = True
    with pytest.raises(EmbedderUnavailable):
        await editor.edit(path.as_uri(), version, replacement("1.a", "Other words."), ORIGIN, write_back=True)
    assert await text_of(memory, path.as_uri()) == path.read_text(encoding="utf-8") == TEXT
    assert not [name for name in files_in(tmp_path) if name.startswith(".")]


async def test_what_was_edited_is_found(editor: BlockEditor, memory: MemoryService) -> None:
    await editor.edit(URI, 1, insertion("The samovar hums.", "1.a"), ORIGIN)
    assert "samovar" in (await memory.search.query("samovar", 1)).hits[0].text


async def test_ids_stay_through_edits_reloads_and_undo(editor: BlockEditor, memory: MemoryService) -> None:
    before = await ids(editor)
    edited = await editor.edit(URI, 1, insertion("First.", "1.a", "before"), ORIGIN)
    after = await ids(editor)
    assert after["1.b"] == before["1.a"]
    assert {*before.values()} < {*after.values()}
    edited = await editor.edit(URI, edited.version, replacement("1.b", "Brew it."), ORIGIN)
    assert edited.blocks[0].block_id == before["1.a"]
    deleted = await editor.edit(URI, edited.version, removal("1.c"), ORIGIN)
    assert {*deleted.removed} == {before[label] for label in ("1.b", "1.b.1", "1.b.2")}
    text = (await text_of(memory)).replace("Brew", "Stew").replace("None", "Some")
    await memory.writer.inject("Above.\n\n" + text, {"uri": URI}, ORIGIN)
    reloaded = await ids(editor)
    assert (reloaded["1.b"], reloaded["1.1.a"]) == (before["1.a"], before["1.1.a"])
    await memory.writer.forget(URI, ORIGIN)
    await memory.history.undo(ORIGIN)
    assert await ids(editor) == reloaded


async def test_the_ids_of_a_document_that_was_never_edited_stay_as_well(
    editor: BlockEditor, memory: MemoryService
) -> None:
    before = await ids(editor)
    await memory.writer.inject(TEXT.replace("two", "three"), {"uri": URI}, ORIGIN)
    assert await ids(editor) == before


async def test_a_read_only_memory_shows_the_same_ids(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        await memory.writer.inject(TEXT, {"uri": URI}, ORIGIN)
        before = await ids(memory.block_editor)
    settings = settings_for(tmp_path, memory__path=str(tmp_path / "memory.db"), memory__read_only=True)
    async with make_service(settings, SwitchableEmbedder()) as reader:
        editor = reader.block_editor
        assert await ids(editor) == before
        assert await labels_with(editor, "steep") == ["1.a"]


async def test_a_document_is_created_once(editor: BlockEditor, memory: MemoryService) -> None:
    created = await editor.create("My plan: v2.c", "# One\n\nText.", "", ORIGIN)
    assert (created.uri, created.status) == ("note:My%20plan%3A%20v2.c", "added")
    assert [one.label for one in created.blocks] == ["1", "1.a"]
    assert (await memory.documents.read(created.uri))[0].title == "My plan: v2.c"
    with pytest.raises(DocumentExists):
        await editor.create("My plan: v2.c", "Other.", "", ORIGIN)
    with pytest.raises(BadArgument):
        await editor.create("Empty", " \n", "", ORIGIN)
    edited = await editor.edit(created.uri, created.version, insertion("More.", "1", "inside"), ORIGIN)
    assert edited.blocks[0].label == "1.b"
    await memory.writer.forget(created.uri, ORIGIN)
    assert (await editor.create("My plan: v2.c", "Other.", "", ORIGIN)).status == "added"


async def test_a_document_without_a_uri_of_its_own_can_be_edited_and_undone(memory: MemoryService) -> None:
    injected = await memory.writer.inject(TEXT, {}, ORIGIN)
    editor = memory.block_editor
    edited = await editor.edit(injected.document_id, 1, replacement("1.a", "Other."), ORIGIN)
    assert (edited.document_id, edited.uri) == (injected.document_id, injected.uri)
    await memory.history.undo(ORIGIN)
    assert await text_of(memory, injected.uri) == TEXT


async def test_pages_below_an_edit_move_with_their_lines(memory: MemoryService) -> None:
    places = [(1, "p. 1"), (5, "p. 2"), (8, "p. 3")]
    await memory.writer.inject(TEXT, {"uri": URI}, ORIGIN, places=places)
    editor = memory.block_editor
    await editor.edit(URI, 1, insertion("One.\n\nTwo.", "1.a"), ORIGIN)
    [hit] = (await memory.search.query("milk", 1)).hits
    assert (hit.start_line, hit.places) == (12, [(12, "p. 3")])


@pytest.mark.parametrize(
    ("after", "moved"),
    [
        ("a\nx\nb\nc\nd", [(1, "1"), (4, "2"), (5, "3")]),
        ("b\nc\nd", [(1, "1"), (2, "2"), (3, "3")]),
        ("a\nb\nd", [(1, "1"), (3, "3")]),
        ("a\nb\nx\ny\nd", [(1, "1"), (3, "2"), (5, "3")]),
        ("x", [(1, "3")]),
    ],
)
def test_places_move_with_their_lines(after: str, moved: list[tuple[int, str]]) -> None:
    places = [(1, "1"), (3, "2"), (4, "3")]
    assert moved_places(places, "a\nb\nc\nd", after) == moved


# Files


async def test_an_edit_is_written_back_and_the_next_load_finds_nothing_new(
    memory: MemoryService, tmp_path: Path
) -> None:
    path = tmp_path / "tea.md"
    path.write_bytes(TEXT.replace("\n", "\r\n").encode())
    await load(memory, path)
    editor = memory.block_editor
    edited = await editor.edit(path.as_uri(), 1, replacement("1", "Black tea"), ORIGIN, write_back=True)
    assert edited.file == str(path)
    assert path.read_bytes() == TEXT.replace("# Tea", "# Black tea").replace("\n", "\r\n").encode()
    assert (await memory.documents.read(path.as_uri()))[0].title == "Black tea"
    assert (await load(memory, path)).unchanged == 1
    assert len(await memory.history.journal(5)) == 2


async def test_a_file_that_has_changed_is_not_overwritten(memory: MemoryService, tmp_path: Path) -> None:
    path = tmp_path / "tea.md"
    path.write_text(TEXT, encoding="utf-8")
    await load(memory, path)
    path.write_text("Something else.", encoding="utf-8")
    editor = memory.block_editor
    with pytest.raises(NotWrittenBack):
        await editor.edit(path.as_uri(), 1, replacement("1.a", "Other."), ORIGIN, write_back=True)
    assert await text_of(memory, path.as_uri()) == TEXT
    assert path.read_text(encoding="utf-8") == "Something else."
    assert (await load(memory, path)).updated == 1


async def test_a_file_is_put_back_when_the_memory_cannot_be_written(
    memory: MemoryService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tea.md"
    path.write_text(TEXT, encoding="utf-8")
    await load(memory, path)
    editor = memory.block_editor

    async def full(write: Write) -> Injected:
        assert write.edit
        assert write.edit.replace_file
        await write.edit.replace_file()
        assert path.read_text(encoding="utf-8") != TEXT
        raise MemoryFull("memory.db")

    monkeypatch.setattr(editor, "_submit", full)
    with pytest.raises(MemoryFull):
        await editor.edit(path.as_uri(), 1, replacement("1.a", "Other."), ORIGIN, write_back=True)
    assert path.read_text(encoding="utf-8") == TEXT


async def test_a_file_outside_the_repository_of_a_memory_is_not_written(tmp_path: Path) -> None:
    """Its memory may be someone else's, and may call any file of the user's by any title."""
    path, own = tmp_path / "tea.md", tmp_path / "repository" / ".ragchat"
    path.write_text(TEXT, encoding="utf-8")
    own.mkdir(parents=True)
    async with service_for(own, roots=["*"]) as memory:
        await load(memory, path)
        editor = memory.block_editor
        with pytest.raises(NotWrittenBack, match="outside the repository"):
            await editor.edit(path.as_uri(), 1, replacement("1.a", "Other."), ORIGIN, write_back=True)
    assert path.read_text(encoding="utf-8") == TEXT


async def test_a_damaged_outline_is_made_again(editor: BlockEditor, tmp_path: Path) -> None:
    before = await ids(editor)
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection, connection:
        connection.execute("UPDATE outlines SET blocks = '{'")
    assert await ids(editor) == before


async def test_an_edit_of_memory_alone_stays_until_the_file_changes(
    memory: MemoryService, tmp_path: Path
) -> None:
    path = tmp_path / "tea.md"
    path.write_text(TEXT, encoding="utf-8")
    os.utime(path, (1e9, 1e9))
    await load(memory, path)
    editor = memory.block_editor
    await editor.edit(path.as_uri(), 1, replacement("1.a", "Other."), ORIGIN)
    assert (await load(memory, path)).unchanged == 1
    assert "Other." in await text_of(memory, path.as_uri())


KILLED = """
import os, signal, sys
import anyio
from pathlib import Path
from ragmemory.blocks.editor import replacement
from ragmemory.files.rewriting import Rewriting
from tests.support.memories import ORIGIN, service_for

folder, moment = Path(sys.argv[1]), sys.argv[2]
replace = Rewriting._replace

def killed(self):
    if moment == "after":
        replace(self)
    os.kill(os.getpid(), signal.SIGKILL)

Rewriting._replace = killed

async def main():
    async with service_for(folder, roots=[str(folder)]) as memory:
        uri = (folder / "tea.md").as_uri()
        editor = memory.block_editor
        await editor.edit(uri, 1, replacement("1.a", "Killed."), ORIGIN, write_back=True)

anyio.run(main)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_kill_during_an_edit_leaves_what_the_next_load_mends(tmp_path: Path, moment: str) -> None:
    path = tmp_path / "tea.md"
    path.write_text(TEXT, encoding="utf-8")
    async with service_for(tmp_path, roots=[str(tmp_path)]) as memory:
        await load(memory, path)
    command = [sys.executable, "-c", KILLED, str(tmp_path), moment]
    killed = await anyio.run_process(command, cwd=Path(__file__).parents[3], check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    text = TEXT if moment == "before" else TEXT.replace("Steep it for two minutes.", "Killed.")
    assert path.read_text(encoding="utf-8") == text
    async with service_for(tmp_path, roots=[str(tmp_path)]) as memory:
        assert await text_of(memory, path.as_uri()) == TEXT
        await load(memory, path)
        assert await text_of(memory, path.as_uri()) == text


# Announcements


async def test_changed_blocks_are_announced_however_they_change(
    editor: BlockEditor, memory: MemoryService
) -> None:
    block: dict[str, ShownBlock] = {one.label: one for one in await editor.blocks(URI)}
    announced: list[set[str]] = []
    arrived = anyio.Event()

    def note(_: str, changed: Sequence[str]) -> None:
        announced.append(set(changed))
        arrived.set()

    memory.on_block_change = note

    async def next_one() -> set[str]:
        nonlocal arrived
        await arrived.wait()
        arrived = anyio.Event()
        return announced.pop()

    def named(*labels: str) -> set[str]:
        return {block[label].block_id for label in labels}

    await editor.edit(URI, 1, replacement("1.b.2", "- dark"), ORIGIN)
    assert await next_one() == named("1", "1.b", "1.b.2")
    text = await text_of(memory)
    await memory.writer.inject(text.replace("None", "Some"), {"uri": URI}, ORIGIN)
    assert await next_one() == named("1", "1.1", "1.1.a")
    await memory.history.undo(ORIGIN)
    assert await next_one() == named("1", "1.1", "1.1.a")
    await memory.writer.forget(URI, ORIGIN)
    assert await next_one() == named(*block)
