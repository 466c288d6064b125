from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio import to_process
from msgspec.structs import replace

from ragcommon.memory_limit import peak_memory
from ragmemory.app import make_service
from ragmemory.code.apart import HARMLESS, MEMORY
from ragmemory.embedders import Embedder
from ragmemory.embedders.local import LocalEmbedder
from ragmemory.ingest.bulk import MAX_FAILURES, BulkWorker, embedder_input
from ragmemory.ingest.chunking import ChunkerInput
from ragmemory.ingest.documents import make_document
from ragmemory.ingest.preparation import Preparation, input_digest
from ragmemory.search.index.chunk_index import ChunkIndex
from ragmemory.search.index.segments import Segment
from ragmemory.search.indexing import BuiltSegment
from ragmemory.search.sync import IndexSync
from ragmemory.stores.store import Store
from ragmemory.types.changes import Changes
from ragmemory.types.writes import Write
from tests.server.code.samples import SAMPLES
from tests.server.code.test_apart import HOSTILE
from tests.support.memories import FOX, ORIGIN, PIE, SwitchableEmbedder, put, settings_for, uris
from tests.support.stores import opened

# `Preparation` in threads: it is not an instance of LocalEmbedder.
IN_THREADS = SwitchableEmbedder()
TEXTS = {
    "note.md": "# Steam\n\nAn engine is built.\n\n## Büro\n\n" + "Der Kessel läuft 12 Stunden! " * 500,
    "table.md": "| part | price |\n|---|---|\n" + "".join(f"| bolt {n} | {n} |\n" for n in range(400)),
    "list.csv": "part,price\n" + "".join(f"bolt {n},{n}\n" for n in range(400)),
    "talk.txt": "".join(f"Anna: Is it {n}?\n\nBen: No, it is {n + 1}.\n\n" for n in range(60)),
    "code.py": "".join(f"def part{n}(bolt):\n    return bolt * {n}\n\n\n" for n in range(100)),
    "words.log": "蒸気機関。" * 300 + "x" * 5_000,
}


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)


@pytest.fixture
def embedder() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    with anyio.fail_after(60):
        async with opened(tmp_path / "memory.db") as store:
            yield store


def preparation(store: Store, embedder: Embedder) -> Preparation:
    indexing = make_service(settings_for(Path(store.path).parent), embedder).indexing
    return Preparation(store, embedder, indexing, 512, lambda: None)


def bulk() -> list[Write]:
    """A batch that pays a worker, with a document that has no room in it."""
    rest = "".join(f"# Part {number}\n\n{'word ' * 80}\n\n" for number in range(1_300))
    texts = [*TEXTS.items(), ("rest.md", rest)]
    return [Write(make_document(text, {"uri": uri, "title": f"On {uri}"}), ORIGIN) for uri, text in texts]


def source(characters: int) -> ChunkerInput:
    return ChunkerInput("x" * characters, is_markdown=True)


async def stopped_worker() -> int:
    """The id of this event loop's worker process, stopped: it gets a batch and does not answer."""
    pid = await to_process.run_sync(os.getpid)
    os.kill(pid, signal.SIGSTOP)
    return pid


async def test_a_worker_returns_the_same_chunks_and_embeddings_as_threads(
    store: Store, embedder: LocalEmbedder
) -> None:
    writes = bulk()
    in_worker = await preparation(store, embedder).prepare(writes)
    assert embedder._document_model is None  # Nothing was embedded in this process.
    assert in_worker == await preparation(store, IN_THREADS).prepare(writes)
    assert [type(one) for one in in_worker] == [Write] * len(TEXTS) + [type(None)]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
async def test_a_batch_whose_worker_is_killed_is_prepared_in_threads_as_are_all_after_the_last_try(
    store: Store, embedder: LocalEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragmemory.ingest.bulk.MAX_FAILURES", 1)
    preparing, writes, outcomes = preparation(store, embedder), bulk(), []

    async def prepare() -> None:
        outcomes.append(await preparing.prepare(writes))

    pid = await stopped_worker()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(prepare)
        await given(preparing)
        os.kill(pid, signal.SIGKILL)
    outcomes.append(await preparing.prepare(writes))
    expected = await preparation(store, IN_THREADS).prepare(writes)
    assert outcomes == [expected, expected]
    assert preparing.worker
    assert not preparing.worker.takes([source(900_000)])


async def test_a_worker_on_a_machine_of_many_cores_parses_code_of_each_language(
    store: Store, embedder: LocalEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragmemory.ingest.bulk.WORTHWHILE", 10_000)
    # Each core adds a thread of the tokenizer, whose memory is no part of the limit.
    monkeypatch.setenv("RAYON_NUM_THREADS", "16")
    monkeypatch.setenv("MALLOC_ARENA_MAX", "128")
    library = sorted(Path(os.__file__).parent.glob("[ab]*.py"))
    texts = [(path.name, path.read_text(encoding="utf-8")[:90_000]) for path in library]
    texts += [(one.path, one.text * (1 + HARMLESS // len(one.text))) for one in SAMPLES]
    writes = [Write(make_document(text, {"uri": uri}), ORIGIN) for uri, text in texts]
    in_worker = preparation(store, embedder)
    outcomes = await in_worker.prepare(writes)
    assert in_worker.worker
    assert in_worker.worker._tries == MAX_FAILURES
    assert outcomes == await preparation(store, IN_THREADS).prepare(writes)


@pytest.mark.full
async def test_a_batch_with_code_that_takes_gigabytes_is_prepared_with_that_code_as_plain_text(
    store: Store, embedder: LocalEmbedder
) -> None:
    hostile = Write(make_document(HOSTILE, {"uri": "a.java"}), ORIGIN)
    preparing, before = preparation(store, embedder), peak_memory()
    *outcomes, last, _ = await preparing.prepare([*bulk()[:-1], hostile, bulk()[-1]])
    assert preparing.worker
    assert preparing.worker._tries == MAX_FAILURES - 1  # It ended at its limit.
    assert preparing.worker.takes([source(900_000)])
    assert peak_memory() - before < MEMORY
    assert outcomes == (await preparation(store, IN_THREADS).prepare(bulk()))[:-1]
    assert isinstance(last, Write)
    assert last.chunks
    assert not any(chunk.heading for chunk in last.chunks)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGSTOP")
async def test_cancelling_a_batch_ends_its_worker(store: Store, embedder: LocalEmbedder) -> None:
    preparing = preparation(store, embedder)
    pid = await stopped_worker()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(preparing.prepare, bulk())
        await given(preparing)
        tasks.cancel_scope.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def given(preparing: Preparation) -> None:
    """Return when a worker has a batch."""
    while not (preparing.worker and preparing.worker._limiter.borrowed_tokens):
        await anyio.lowlevel.checkpoint()


async def test_embeddings_that_come_with_a_document_are_kept(store: Store, embedder: LocalEmbedder) -> None:
    [first, *others] = bulk()
    [written, *_] = await preparation(store, embedder).prepare([first])
    assert isinstance(written, Write)
    text = embedder_input(first.document.text, first.document.title, (written.chunks or [])[0])
    known = {input_digest(embedder.identity, *text): bytes(512)}
    [written, *_] = await preparation(store, embedder).prepare([replace(first, known=known), *others])
    assert isinstance(written, Write)
    assert [one == bytes(512) for one in written.embeddings[:2]] == [True, False]


async def test_what_a_worker_indexes_is_found_as_if_this_process_had_indexed_it(
    tmp_path: Path, embedder: LocalEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragmemory.ingest.bulk.WORTHWHILE", 10_000)
    settings = settings_for(tmp_path, memory__path=str(tmp_path / "memory.db"))
    build, built_here = ChunkIndex.segment, list[int]()

    def note_and_build(self: ChunkIndex, after: int, upto: int, changes: Changes) -> Segment:
        built_here.append(len(changes.chunk_ids))
        return build(self, after, upto, changes)

    monkeypatch.setattr(ChunkIndex, "segment", note_and_build)
    async with make_service(settings, embedder) as memory:
        await put(memory, FOX, uri="fox")
        assert memory.indexing.segment_settings is None  # There are no searches.
        assert await uris(memory, "fox") == ["fox"]
        async with anyio.create_task_group() as tasks:
            for write in bulk()[:-1]:
                tasks.start_soon(memory.writer.queue.submit, write)
        asked = ("bolt 12", "Kessel", "蒸気", "fox")
        found = [await memory.search.query(text, 20) for text in asked]
        assert built_here == [1]
    shutil.rmtree(tmp_path / "memory.db-index")
    async with make_service(settings, embedder) as memory:
        assert [await memory.search.query(text, 20) for text in asked] == found
        assert len(built_here) > 1


async def test_a_segment_of_other_chunks_is_not_used(tmp_path: Path, embedder: LocalEmbedder) -> None:
    async with make_service(settings_for(tmp_path), embedder) as memory:
        await put(memory, FOX, uri="fox")
        assert await uris(memory, "fox") == ["fox"]
        assert isinstance(memory.indexing, IndexSync)
        assert memory.indexing._index
        [segment] = memory.indexing._index.segments
        for length in (1, 2):
            # The longer one could still match, but its batch may never be committed.
            memory.indexing.offer(BuiltSegment(b"", Segment.merge([segment] * length, [None] * length)))
            await put(memory, f"{PIE} {length}", uri="pie")
            assert (await uris(memory, "apple pie"))[0] == "pie"
            assert not memory.indexing._built


def test_only_much_text_within_a_short_time_pays_a_worker() -> None:
    worker = BulkWorker()
    paid = [worker.takes([source(size)]) for size in (400_000, 90_000, 10_000, 9_000)]
    assert paid == [False, False, True, False]
    assert BulkWorker().takes([source(300_000), source(200_000)])
