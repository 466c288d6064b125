"""The index follows the store, is saved, and is rebuilt when it is lost, damaged or of another memory."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from hypothesis import settings

from ragcommon.contract.search import Hit
from ragconfig.settings import load_settings
from ragmemory.errors import (
    NotAnIndex,
)
from ragmemory.search.index.chunk_index import ChunkIndex
from ragmemory.search.index.saving import SavedIndex
from ragmemory.search.indexing import BuiltSegment
from ragmemory.search.sync import IndexSync
from ragmemory.service import MemoryService
from ragmemory.settings import RankingSettings
from ragmemory.stores.changes import ChangeStore
from ragmemory.types.changes import Changes, Checkpoint
from tests.support import stores
from tests.support.memories import (
    EMBEDDER,
    FOX,
    ORIGIN,
    PIE,
    backup_of,
    put,
    restore,
    service_for,
    uris,
)


async def test_what_another_writes_is_found_at_the_next_query(
    tmp_path: Path, memory: MemoryService, memory_url: str, index_url: str
) -> None:
    async with service_for(tmp_path, url=memory_url, index=index_url) as other:
        assert await uris(other, "fox") == []
        await put(memory, FOX, uri="fox")
        assert await uris(other, "fox") == ["fox"]
        await put(memory, PIE, uri="fox")
        assert (await other.search.query("apple pie", 8)).hits[0].text == PIE
        await other.writer.forget("fox", ORIGIN)
        assert await uris(memory, "apple pie") == []


@pytest.mark.parametrize(("more", "reads"), [(0, 1), (1, 2)])
async def test_the_chunks_of_a_built_segment_are_read_once_and_once_more_if_there_are_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int, reads: int
) -> None:
    ranking = load_settings(environ={}).table("ranking", RankingSettings)
    read, limits = ChangeStore.since, list[int]()

    async def note_and_read(self: ChangeStore, checkpoint: Checkpoint, limit: int) -> Changes:
        limits.append(limit)
        return await read(self, checkpoint, limit)

    async with stores.opened(tmp_path / "memory.db") as store:
        built_of = ChunkIndex(EMBEDDER[1], ranking)
        await stores.put(store, "a" * 20)
        sync = IndexSync(store, EMBEDDER[0], tmp_path / "index", ranking)
        changes = await store.changes.since(Checkpoint(), 10)
        sync.offer(BuiltSegment(changes.digest, built_of.segment(0, len(changes.chunk_ids), changes)))
        for number in range(more):
            await stores.put(store, "b" * 20, str(number))
        monkeypatch.setattr(ChangeStore, "since", note_and_read)
        await sync.bring_up_to_date()
        assert sync._index
        assert (len(limits), len(sync._index)) == (reads, 1 + more)


async def test_a_second_start_reads_the_saved_index_and_what_came_after(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        await put(memory, FOX, uri="fox")
        await memory.search.query("fox", 8)
    assert (tmp_path / "memory.db-index").is_dir()
    async with service_for(tmp_path) as memory:
        await put(memory, PIE, uri="pie")
        assert (await uris(memory, "fox"))[0] == "fox"
        assert (await uris(memory, "pie"))[0] == "pie"


async def test_a_lost_or_damaged_index_is_rebuilt(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        await put(memory, FOX, uri="fox")
    index = tmp_path / "memory.db-index"
    for file in index.rglob("*"):
        if file.is_file():
            file.write_bytes(b"nonsense")
    async with service_for(tmp_path) as memory:
        assert await uris(memory, "fox") == ["fox"]
    shutil.rmtree(index, ignore_errors=True)
    async with service_for(tmp_path) as memory:
        assert await uris(memory, "fox") == ["fox"]


async def test_every_damage_of_the_index_is_noticed_and_mended_before_it_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def check(folder: Path) -> list[Hit]:
        async with service_for(folder) as memory:
            first = (await memory.search.query("which animal5 jumps over thing9 and word12", 8)).hits
            for number in (1, 17, 49):
                assert (await uris(memory, f"animal{number} jumps"))[0] == f"fox{number}"
            everything = (await memory.search.query("jumps", 100)).hits
            assert {hit.uri for hit in everything} == {f"fox{n}" for n in range(50) if n not in (3, 7)}
        return first

    async with service_for(tmp_path) as memory:
        for number in range(50):
            await put(
                memory, f"Animal{number} jumps over word{number} and thing{number}.", uri=f"fox{number}"
            )
        await memory.writer.forget("fox3", ORIGIN)
    async with service_for(tmp_path) as memory:
        await memory.writer.forget("fox7", ORIGIN)
    sound = await check(tmp_path)
    (tmp_path / "rebuilt").mkdir()
    shutil.copy(tmp_path / "memory.db", tmp_path / "rebuilt")
    rebuilt = await check(tmp_path / "rebuilt")
    found = 0
    for name in sorted(path.name for path in (tmp_path / "memory.db-index").glob("*.index")):
        size = (tmp_path / "memory.db-index" / name).stat().st_size
        for at in range(0, size, 1 + size // (settings().max_examples // 6)):
            copy = tmp_path / f"{name}-{at}"
            copy.mkdir()
            shutil.copy(tmp_path / "memory.db", copy)
            shutil.copytree(tmp_path / "memory.db-index", copy / "memory.db-index")
            data = bytearray((copy / "memory.db-index" / name).read_bytes())
            data[at : at + 64] = bytes(byte ^ 0xFF for byte in data[at : at + 64])
            (copy / "memory.db-index" / name).write_bytes(data)
            caplog.clear()
            assert await check(copy) in (sound, rebuilt)
            found += "is damaged" in caplog.text
            await check(copy)
    assert found > 4


async def test_damage_that_no_question_comes_upon_is_noticed_after_some_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for module in ("checking", "vectors"):
        monkeypatch.setattr(f"ragmemory.search.index.{module}.ALL_EXACT", 100)
    monkeypatch.setattr("ragmemory.search.index.vectors.RESCORED", 100)
    monkeypatch.setattr("ragmemory.search.index.vectors.SHORTLIST", 100)
    part = " ".join(f"word{number}" for number in range(60))
    text = "\n\n".join(f"# Part {number}\n\nAnimal{number}. {part}" for number in range(1_000))
    async with service_for(tmp_path) as memory:
        await put(memory, text, uri="parts")
        sound = (await memory.search.query("animal7", 8)).hits
    for share in (0.3, 0.6, 0.9):
        copy = tmp_path / str(share)
        shutil.copytree(tmp_path / "memory.db-index", copy / "memory.db-index")
        shutil.copy(tmp_path / "memory.db", copy)
        (file,) = (copy / "memory.db-index").glob("segment-*")
        data = bytearray(file.read_bytes())
        data[int(share * len(data))] ^= 1
        file.write_bytes(data)
        caplog.clear()
        async with service_for(copy) as memory:
            for _ in range(10):
                assert (await memory.search.query("animal7", 8)).hits == sound
        assert "is damaged" in caplog.text


async def test_an_index_of_another_memory_is_not_believed(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        await put(memory, FOX, uri="fox")
    for name in ("memory.db", "memory.db-wal", "memory.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    async with service_for(tmp_path) as memory:
        await put(memory, PIE, uri="pie")
        assert await uris(memory, "fox pie") == ["pie"]


async def test_an_index_that_cannot_be_saved_is_kept_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "memory.db-index").write_text("in the way", encoding="utf-8")
    async with service_for(tmp_path) as memory:
        await put(memory, FOX, uri="fox")
        assert await uris(memory, "fox") == ["fox"]
    assert "kept in memory only" in caplog.text


async def test_a_folder_of_the_users_in_place_of_the_index_is_refused_and_left_as_it_is(
    tmp_path: Path,
) -> None:
    thesis = tmp_path / "memory.db-index" / "myproject" / "thesis.txt"
    thesis.parent.mkdir(parents=True)
    thesis.write_text("ten years of work", encoding="utf-8")
    os.utime(thesis.parent, (0, 0))
    async with service_for(tmp_path) as memory:
        with pytest.raises(NotAnIndex, match="myproject"):
            await put(memory, FOX, uri="fox")
    assert thesis.read_text(encoding="utf-8") == "ten years of work"
    thesis.unlink()
    thesis.parent.rmdir()
    async with service_for(tmp_path) as memory:
        await put(memory, FOX, uri="fox")
    thesis.parent.mkdir()
    thesis.write_text("put into the index's folder later", encoding="utf-8")
    async with service_for(tmp_path) as memory:
        await put(memory, PIE, uri="pie")
        assert (await uris(memory, "fox"))[0] == "fox"
    assert thesis.exists()


async def test_an_index_newer_than_a_restored_memory_is_not_believed(tmp_path: Path) -> None:
    restore(await backup_of(tmp_path), tmp_path / "memory.db")
    async with service_for(tmp_path) as memory:
        assert await uris(memory, "fox apple pie") == ["fox"]
        await put(memory, "# Sea\n\nWhales sing in the deep sea.", uri="whale")
        assert (await uris(memory, "singing whales"))[0] == "whale"


async def test_a_restored_memory_that_has_grown_past_the_index_is_noticed_all_the_same(
    tmp_path: Path,
) -> None:
    copy = await backup_of(tmp_path)
    (tmp_path / "memory.db-index").rename(tmp_path / "newer")
    restore(copy, tmp_path / "memory.db")
    async with service_for(tmp_path) as memory:
        for name in ("whale", "shark", "crab"):
            await put(memory, f"# Sea\n\nThe {name} lives in the deep sea.", uri=name)
    shutil.rmtree(tmp_path / "memory.db-index")
    (tmp_path / "newer").rename(tmp_path / "memory.db-index")
    async with service_for(tmp_path) as memory:
        assert (await uris(memory, "whale"))[0] == "whale"
        assert "pie" not in await uris(memory, "apple pie")


async def test_the_last_write_before_the_end_is_in_the_saved_index(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        await put(memory, FOX, uri="fox")
    assert any(file.is_file() for file in (tmp_path / "memory.db-index").rglob("*"))


async def test_a_file_that_a_killed_process_left_is_removed_though_there_is_nothing_to_save(
    tmp_path: Path,
) -> None:
    async with service_for(tmp_path) as memory:
        await put(memory, FOX, uri="fox")
    index = tmp_path / "memory.db-index"
    [listed] = index.glob("segment-*")
    left = index / f"segment-{'0' * 16}.index"
    shutil.copy(listed, left)
    async with service_for(tmp_path) as memory:
        assert await uris(memory, "fox") == ["fox"]
    assert [*index.glob("segment-*")] == [listed]


async def test_what_a_query_had_to_read_is_saved_without_waiting_for_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n\n".join(f"# Part {number}\n\nWord{number} stands here." for number in range(2_200))
    async with service_for(tmp_path) as memory:
        await put(memory, text, uri="long")
    shutil.rmtree(tmp_path / "memory.db-index")
    saved = threading.Event()
    commit = SavedIndex.commit

    def commit_and_tell(*arguments: Any) -> None:
        commit(*arguments)
        saved.set()

    monkeypatch.setattr(SavedIndex, "commit", commit_and_tell)
    async with service_for(tmp_path) as memory:
        assert (await uris(memory, "word2000"))[0] == "long"
        assert await to_thread.run_sync(saved.wait, 30)
        assert list((tmp_path / "memory.db-index").glob("segment-*"))


async def test_small_segments_are_merged_behind_the_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged = threading.Event()
    replace = ChunkIndex.replace

    def replace_and_tell(*arguments: Any) -> bool:
        is_done = replace(*arguments)
        merged.set()
        return is_done

    monkeypatch.setattr(ChunkIndex, "replace", replace_and_tell)
    monkeypatch.setattr("ragmemory.search.sync._WRITES_FIRST_SECONDS", 1_000.0)
    async with service_for(tmp_path) as memory:
        for uri, text in (("fox", FOX), ("pie", PIE)):
            await put(memory, text, uri=uri)
            assert await uris(memory, "fox pie")
        assert await to_thread.run_sync(merged.wait, 30)
        assert sorted(await uris(memory, "fox pie")) == ["fox", "pie"]


async def test_segments_are_merged_when_no_questions_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for uri, text in (("fox", FOX), ("pie", PIE)):
        async with service_for(tmp_path) as memory:
            await put(memory, text, uri=uri)
    monkeypatch.setattr("ragmemory.search.sync._IDLE_SECONDS", 1_000.0)
    merged = threading.Event()
    write = SavedIndex.write

    def note_and_write(*arguments: Any) -> Any:
        merged.set()
        return write(*arguments)

    monkeypatch.setattr(SavedIndex, "write", note_and_write)
    async with service_for(tmp_path) as memory:
        assert isinstance(memory.indexing, IndexSync)
        while memory.indexing._idle_wait is None:
            assert sorted(await uris(memory, "fox pie")) == ["fox", "pie"]
        for _ in range(3):
            waiting = memory.indexing._idle_wait
            waiting.deadline = asked = anyio.current_time() + 500.0  # As if half of the time had passed.
            assert sorted(await uris(memory, "fox pie")) == ["fox", "pie"]
            assert waiting.deadline >= asked + 500.0
        assert not merged.is_set()
        waiting.deadline = anyio.current_time()
        assert await to_thread.run_sync(merged.wait, 30)
