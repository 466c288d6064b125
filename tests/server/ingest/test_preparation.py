from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragmemory.errors import EmbedderUnavailable, TextRefused
from ragmemory.ingest.documents import make_document
from ragmemory.ingest.preparation import Preparation
from ragmemory.ingest.write_queue import LONG
from ragmemory.service import MemoryService
from ragmemory.types.writes import Embedding, Write
from tests.support.memories import ORIGIN, SwitchableEmbedder, service_for
from tests.support.stores import BOTH_ENGINES, store_at

pytestmark = BOTH_ENGINES


class PickyEmbedder(SwitchableEmbedder):
    """Fails for some texts, and counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        self.asked += 1
        if any("down" in text for text in texts):
            raise EmbedderUnavailable(self.identity, "it was turned off")
        if any("refused" in text for text in texts):
            raise TextRefused(self.identity, "it is too long")
        return await super().embed_documents(texts, titles)


@pytest.fixture
def embedder() -> PickyEmbedder:
    return PickyEmbedder()


@pytest.fixture
async def preparation(tmp_path: Path, embedder: PickyEmbedder) -> AsyncIterator[Preparation]:
    store = store_at(tmp_path / "memory.db", 5, 100)
    await store.engine.ensure_open()

    indexing = service_for(tmp_path, embedder).indexing
    yield Preparation(store, embedder, indexing, 512, lambda: None)
    await store.engine.close()


def ask(text: str, uri: str = "") -> Write:
    return Write(make_document(text, {"uri": uri or text}), ORIGIN)


def sections(count: int) -> str:
    return "".join(f"# Part {number}\n\nA text.\n\n" for number in range(count))


async def test_a_refused_text_fails_alone_and_is_found_by_halves(
    preparation: Preparation, embedder: PickyEmbedder
) -> None:
    texts = [f"text {number}" for number in range(256)]
    texts[100] = "refused"
    outcomes = await preparation.prepare([ask(text) for text in texts])
    assert [number for number, one in enumerate(outcomes) if not isinstance(one, Write)] == [100]
    assert isinstance(outcomes[100], TextRefused)
    assert all(
        isinstance(one, Write) and len(one.embeddings) == 1 for one in outcomes if one != outcomes[100]
    )
    assert embedder.asked == 1 + 2 * 8


async def test_an_embedder_that_is_down_is_asked_once_for_a_batch(
    preparation: Preparation, embedder: PickyEmbedder
) -> None:
    outcomes = await preparation.prepare([ask(f"down {number}") for number in range(50)])
    assert {type(one) for one in outcomes} == {EmbedderUnavailable}
    assert embedder.asked == 1


async def test_of_more_chunks_than_a_batch_the_rest_waits_for_the_next(preparation: Preparation) -> None:
    writes = [ask(sections(500), f"{number}.md") for number in range(4)]
    first, second, *rest = await preparation.prepare(writes)
    assert isinstance(first, Write)
    assert isinstance(second, Write)
    assert rest == [None, None]


@pytest.mark.parametrize(
    "text", [sections(1_500), "word " * 250_000, "# a\n" * 25_000], ids=["chunks", "characters", "lines"]
)
async def test_a_long_document_is_in_no_batch(
    preparation: Preparation, embedder: PickyEmbedder, text: str
) -> None:
    [outcome] = await preparation.prepare([ask(text, "long.md")])
    assert outcome == LONG
    assert embedder.asked == 0


BREAD = "Bread\n=====\n\nBake it for an hour.\n\nCake\n====\n\nEat it in the afternoon.\n"
BAKE = "def bake():\n    return heat(bread, 200)\n\n\ndef eat():\n    return cut(cake, 12)\n"


async def ignore(*_: object) -> None:
    pass


async def state(memory: MemoryService, uri: str) -> tuple[int, list[Any], list[str]]:
    """The number of chunks, the document without them, and the journal."""
    found = await memory.documents.find(uri)
    entries = await memory._store.journal.entries(9)
    return found.chunks, [replace(found, chunks=0)], [entry.action for entry in entries]


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.txt", BREAD), ("a.md", BREAD), ("a.py", BAKE), ("long.txt", "word " * 210_000)],
    ids=["text", "markdown", "code", "long"],
)
async def test_what_an_earlier_release_cut_otherwise_is_cut_again_and_is_no_new_version(
    tmp_path: Path, name: str, text: str
) -> None:
    uri = f"file:///{name}"
    async with service_for(tmp_path, chunking__max_tokens=8 if len(text) < 1_000 else 256) as memory:
        await memory.writer.inject(text, {"uri": uri}, ORIGIN, stamp="5:9:1")
        many, *before = await state(memory, uri)
    async with service_for(tmp_path) as memory:
        same = await memory.writer.inject(text, {"uri": uri}, ORIGIN, stamp="5:9:1")
        assert (same.status, same.chunks) == ("unchanged", many)
        again = await memory.writer.inject(text, {"uri": uri}, ORIGIN, stamp="6:9:1")
        few, *after = await state(memory, uri)
        assert (again.status, again.chunks) == ("unchanged", few)
        assert few < many
        assert after == before
        assert (await memory.documents.read(again.document_id))[1] == text
        assert (await memory.documents.files([uri]))[uri].stamp == "6:9:1"
        found = await memory.search.query(text.split()[-1], 50)
        assert 0 < len(found.hits) <= few
        assert (await memory.maintenance.verify(ignore)).ok


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.txt", BREAD), ("a.md", sections(1_500)), ("a.txt", "word " * 210_000)],
    ids=["text", "chunks", "long"],
)
async def test_what_an_earlier_release_cut_alike_is_not_written_again(
    tmp_path: Path, name: str, text: str
) -> None:
    embedder = PickyEmbedder()
    async with service_for(tmp_path, embedder) as memory:
        await memory.writer.inject(text, {"uri": f"file:///{name}"}, ORIGIN, stamp="5:9:1")
        embedder.asked = 0
        again = await memory.writer.inject(text, {"uri": f"file:///{name}"}, ORIGIN, stamp="6:9:1")
        assert (again.status, embedder.asked) == ("unchanged", 0)
        assert len(await memory._store.journal.entries(9)) == 1
