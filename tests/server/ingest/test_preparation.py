from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from ragmemory.errors import EmbedderUnavailable, TextRefused
from ragmemory.ingest.documents import make_document
from ragmemory.ingest.preparation import Preparation
from ragmemory.ingest.write_queue import LONG
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


async def test_a_text_that_an_earlier_release_read_without_headings_is_read_again(tmp_path: Path) -> None:
    text = "Bread\n=====\n\nBake it.\n\nCake\n====\n\nEat it.\n"
    async with service_for(tmp_path) as memory:
        for stamp, uri, status in [
            ("5:9:1", "file:///a.txt", "added"),
            ("5:9:2", "file:///a.txt", "unchanged"),
            ("6:9:2", "file:///a.txt", "updated"),
            ("6:9:3", "file:///a.txt", "unchanged"),
            ("5:9:1", "file:///b.md", "added"),
            ("6:9:1", "file:///b.md", "unchanged"),
        ]:
            written = await memory.writer.inject(text, {"uri": uri}, ORIGIN, stamp=stamp)
            assert (stamp, written.status) == (stamp, status)
