"""Export and import: a round trip gives an equal memory."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from ragcommon.contract.documents import DocumentInfo, Metadata
from ragcommon.contract.maintenance import PortableDocument, PortableVersion
from ragmemory.errors import EmbedderUnavailable
from ragmemory.maintenance import transfer
from ragmemory.service import MemoryService
from ragmemory.types.writes import Embedding
from tests.server.test_model import metadata, odd_texts
from tests.support.memories import LOCAL, ORIGIN, SwitchableEmbedder, service_for
from tests.support.stores import BOTH_ENGINES

pytestmark = BOTH_ENGINES


async def exported(memory: MemoryService) -> list[PortableDocument]:
    documents: list[PortableDocument] = []
    after = 0
    while True:
        page = await memory.maintenance.export(after)
        documents += page.documents
        if page.next_cursor is UNSET:
            return documents
        after = int(page.next_cursor)


async def content(memory: MemoryService) -> list[tuple[DocumentInfo, str]]:
    """All documents with their metadata, times and texts."""
    listed, _ = await memory.documents.page(1000)
    return [await memory.documents.read(info.uri) for info in listed]


async def found(memory: MemoryService, query: str) -> list[tuple[str, str, str, str, float]]:
    """All hits in a fixed order: those of equal score have none."""
    hits = (await memory.search.query(query, 100)).hits
    return sorted((hit.uri, hit.location, hit.heading, hit.text, round(hit.score, 6)) for hit in hits)


async def check_round_trip(one: MemoryService, two: MemoryService) -> None:
    documents = await exported(one)
    outcomes = await two.maintenance.import_documents(documents, ORIGIN)
    assert {outcome.status for outcome in outcomes} <= {"added"}
    assert await content(two) == await content(one)
    assert await exported(two) == documents
    assert {one.status for one in await two.maintenance.import_documents(documents, ORIGIN)} <= {"unchanged"}


# Texts that differ: two equal ones without a uri would be one document.
documents = st.lists(
    st.tuples(st.booleans(), odd_texts.filter(lambda text: bool(text.strip())), metadata),
    max_size=4,
    unique_by=lambda document: document[1],
)


@settings(deadline=None, max_examples=max(5, settings().max_examples // 10))
@given(documents)
def test_a_round_trip_gives_an_equal_memory(documents: Sequence[tuple[bool, str, Metadata]]) -> None:
    async def play(folder: Path) -> None:
        for name in ("one", "two"):
            (folder / name).mkdir()
        with anyio.fail_after(30):
            async with service_for(folder / "one") as one, service_for(folder / "two") as two:
                for number, (has_uri, text, details) in enumerate(documents):
                    uri = {"uri": f"{number}.txt"} if has_uri else {}
                    await one.writer.inject(text, {**details, **uri}, ORIGIN)
                await check_round_trip(one, two)
                # Without removed documents, which count in the statistics of an index until it is rebuilt.
                assert await found(two, "some words") == await found(one, "some words")

    with TemporaryDirectory() as folder:
        anyio.run(play, Path(folder))


async def test_times_and_places_survive_a_round_trip(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    async with service_for(folders[0]) as one, service_for(folders[1]) as two:
        pages, places = "The kettle boils.\nTea is poured.\n", [(1, "p. 1"), (2, "p. 2")]
        old = PortableDocument("Old words.", {"uri": "tea.pdf"}, "2026-01-31", "2026-02-01T10:00:00+02:00")
        await one.maintenance.import_documents([old], ORIGIN)
        info, _ = await one.documents.read("tea.pdf")
        times = "2026-01-31T00:00:00.000+00:00", "2026-02-01T08:00:00.000+00:00"
        assert (info.added_at, info.updated_at) == times
        await one.writer.inject("Coffee is ground.", {"uri": "coffee.md"}, ORIGIN)
        await one.writer.inject(pages, {"uri": "tea.pdf"}, ORIGIN, places=places)
        await check_round_trip(one, two)
        [tea] = [document for document in await exported(two) if document.text == pages]
        assert tea.places == places
        assert tea.added_at < tea.updated_at
        assert [place for _, place, *_ in await found(two, "tea")] == [
            place for _, place, *_ in await found(one, "tea")
        ]


async def versions(memory: MemoryService, uri: str) -> list[tuple[str, Metadata, str]]:
    """The versions of a document, the current one first."""
    found = (await memory.history.versions(uri, 10)).versions
    read = [await memory.history.version(uri, one.number) for one in found]
    return [(one.text, one.metadata, one.added_at) for one in read if one.version.action != "removed"]


async def test_earlier_versions_survive_a_round_trip_into_a_memory_that_has_none(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two", tmp_path / "three"]
    for folder in folders:
        folder.mkdir()
    async with (
        service_for(folders[0]) as one,
        service_for(folders[1]) as two,
        service_for(folders[2]) as three,
    ):
        await one.writer.inject("Tea was removed.", {"uri": "tea.md"}, ORIGIN)
        await one.writer.forget("tea.md", ORIGIN)
        await one.writer.inject("Tea is grown.", {"uri": "tea.md", "tags": ["old"]}, ORIGIN)
        await one.writer.inject("Tea is poured.", {"uri": "tea.md"}, ORIGIN)
        await one.writer.inject("Tea is drunk.", {"uri": "tea.md"}, ORIGIN)
        await check_round_trip(one, two)
        assert len(await versions(two, "tea.md")) == 3
        assert await versions(two, "tea.md") == (await versions(one, "tea.md"))[:3]

        await three.writer.inject("Mine.", {"uri": "tea.md"}, ORIGIN)
        await three.maintenance.import_documents(await exported(one), ORIGIN)
        assert [text for text, _, _ in await versions(three, "tea.md")] == ["Tea is drunk.", "Mine."]


async def test_what_was_undone_is_exported_with_the_earlier_versions(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        for text in ("Tea is grown.", "Tea is poured.", "Tea is spilt."):
            await memory.writer.inject(text, {"uri": "tea.md"}, ORIGIN)
        await memory.history.undo(ORIGIN)
        await memory.writer.forget("tea.md", ORIGIN)
        await memory.history.undo(ORIGIN)
        [document] = await exported(memory)
    assert document.versions is not UNSET
    texts = [version.text for version in document.versions]
    assert texts == ["Tea is grown.", "Tea is poured.", "Tea is spilt.", "Tea is poured."]
    assert document.text == "Tea is poured."


async def test_the_last_of_two_documents_with_one_uri_counts_although_the_first_has_versions(
    tmp_path: Path,
) -> None:
    tea = PortableDocument("Tea is drunk.", {"uri": "tea.md"})
    earlier = [PortableVersion(f"Tea {number}.", {"uri": "tea.md"}) for number in range(2)]
    async with service_for(tmp_path) as memory:
        both = [replace(tea, versions=earlier), replace(tea, text="Tea is cold.")]
        await memory.maintenance.import_documents(both, ORIGIN)
        assert (await memory.documents.read("tea.md"))[1] == "Tea is cold."


async def test_the_newest_of_many_earlier_versions_are_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "_VERSIONS_BYTES", len("Tea 1.Tea 2."))
    async with service_for(tmp_path) as memory:
        for number in range(4):
            await memory.writer.inject(f"Tea {number}.", {"uri": "tea.md"}, ORIGIN)
        [document] = await exported(memory)
    assert document.versions is not UNSET
    assert [version.text for version in document.versions] == ["Tea 1.", "Tea 2."]


class CountingEmbedder(SwitchableEmbedder):
    """Counts the texts that it embeds."""

    embedded = 0

    async def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        self.embedded += len(texts)
        return await super().embed_documents(texts, titles)


class FailingEmbedder(CountingEmbedder):
    """Is down after the first texts."""

    async def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        embeddings = await super().embed_documents(texts, titles)
        self.is_down = True
        return embeddings


async def test_an_import_that_fails_midway_leaves_no_earlier_version_as_the_current_text(
    tmp_path: Path,
) -> None:
    earlier = [PortableVersion(f"Tea {number}.", {"uri": "tea.md"}) for number in range(2)]
    tea = PortableDocument("Tea is drunk.", {"uri": "tea.md"}, versions=earlier)
    async with service_for(tmp_path, embedder=FailingEmbedder()) as memory:
        [outcome] = await memory.maintenance.import_documents([tea], ORIGIN)
        assert outcome.status == "added"
        texts = [text for text, _, _ in await versions(memory, "tea.md")]
        assert texts == ["Tea is drunk.", "Tea 1.", "Tea 0."]


@pytest.mark.parametrize(("identity", "embedded"), [(LOCAL.identity, 0), ("another", 2)])
async def test_exported_vectors_are_used_by_the_same_embedder_and_by_no_other(
    tmp_path: Path, identity: str, embedded: int
) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    embedder = CountingEmbedder(identity)
    async with service_for(folders[0]) as one, service_for(folders[1], embedder) as two:
        await one.writer.inject(
            "# Tea\n\nThe kettle boils.\n\n# Coffee\n\nIt is ground.", {"uri": "a.md"}, ORIGIN
        )
        page = await one.maintenance.export(vectors=True)
        assert (page.embedder, page.dimensions) == (LOCAL.identity, 256)
        assert {one.status for one in await two.maintenance.import_documents(page.documents, ORIGIN)} == {
            "added"
        }
        assert embedder.embedded == embedded
        assert await content(two) == await content(one)
        assert await found(two, "boiling water") == await found(one, "boiling water")


@pytest.mark.parametrize("vectors", [{"xyz": ""}, {"00": "?"}])
async def test_vectors_that_are_none_are_refused_with_their_document(
    tmp_path: Path, vectors: dict[str, str]
) -> None:
    async with service_for(tmp_path) as memory:
        [done] = await memory.maintenance.import_documents(
            [PortableDocument("Pie.", vectors=vectors)], ORIGIN
        )
        assert done.error == "vectors must be texts in base64 by digests in hexadecimal."


async def test_a_damaged_vector_is_computed_again(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    embedder = CountingEmbedder(LOCAL.identity)
    async with service_for(tmp_path / "one") as one, service_for(tmp_path, embedder) as two:
        await one.writer.inject("# Tea\n\nThe kettle boils.", {"uri": "a.md"}, ORIGIN)
        [document] = (await one.maintenance.export(vectors=True)).documents
        assert isinstance(document.vectors, dict)
        not_a_number = b64encode(b"\x00\x7e" * 256).decode()
        damaged = replace(document, vectors=dict.fromkeys(document.vectors, not_a_number))
        assert (await two.maintenance.import_documents([damaged], ORIGIN))[0].status == "added"
        assert embedder.embedded == 1
        assert await found(two, "boiling water") == await found(one, "boiling water")


async def test_an_export_comes_in_pages(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        for number in range(3):
            await memory.writer.inject(f"{number} " * 300_000, {"uri": f"{number}"}, ORIGIN)
        page = await memory.maintenance.export()
        assert (len(page.documents), page.total) == (2, 3)
        assert [document.metadata["uri"] for document in await exported(memory)] == ["0", "1", "2"]
        chosen = (await memory.maintenance.export(uris=["2", "0", "3"])).documents
        assert [document.metadata["uri"] for document in chosen] == ["0", "2"]


async def test_a_document_is_of_the_machine_that_has_sent_its_file(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:

        async def machine() -> str:
            return (await memory.documents.find("file:///tea.md")).machine

        sent = PortableDocument("Tea.", {"uri": "file:///tea.md"}, machine="annes-laptop-3f9a12c4")
        await memory.maintenance.import_documents([sent], ORIGIN)
        assert await machine() == "annes-laptop-3f9a12c4"
        [document] = await exported(memory)
        assert document.machine == ""
        # From a file of exports.
        await memory.maintenance.import_documents([replace(document, text="Green tea.")], ORIGIN)
        assert await machine() == "annes-laptop-3f9a12c4"
        # From a file of the server itself.
        await memory.writer.inject("Black tea.", sent.metadata, ORIGIN, stamp="1:2:3")
        assert await machine() == ""


async def test_a_refused_document_does_not_keep_the_others_out(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        documents = [
            PortableDocument(" "),
            PortableDocument("Pie.", added_at="yesterday"),
            PortableDocument("Cats sleep.", {"uri": "fox"}),
            PortableDocument("Foxes jump.", {"uri": "fox"}, added_at="2026-01-31"),
        ]
        done = await memory.maintenance.import_documents(documents, ORIGIN)
        assert [(one.status, one.error) for one in done] == [
            ("failed", "text is empty."),
            ("failed", "added_at must be a time in ISO 8601."),
            ("added", ""),
            ("updated", ""),
        ]
        _, text = await memory.documents.read("fox")
        assert text == "Foxes jump."


async def test_an_error_that_meets_every_document_is_none_of_a_single_one(tmp_path: Path) -> None:
    embedder = SwitchableEmbedder()
    embedder.is_down = True
    async with service_for(tmp_path, embedder) as memory:
        with pytest.raises(EmbedderUnavailable):
            await memory.maintenance.import_documents([PortableDocument("Foxes jump.")] * 2, ORIGIN)
