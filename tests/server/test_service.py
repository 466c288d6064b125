"""The memory service on real files: inject, query, undo, and what several processes do to one file.

Covers `app`, `types`, `documents`, `ragmemory.ingest.sweeping`, `ragmemory.ingest.writer`,
`ragmemory.maintenance.maintenance`, `ragmemory.maintenance.reembedding`, `ragmemory.search.searching` and
`ragmemory.search.sync`.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from anyio import from_thread, to_thread
from anyio.abc import TaskStatus

from ragmemory.errors import (
    BadArgument,
    DocumentNotFound,
    EmbedderMismatch,
    EmbedderUnavailable,
    MemoryDamaged,
    MemoryUnusable,
    NotAMemory,
    NotAnIndex,
    NothingToUndo,
    NotStored,
    NotUndoable,
    TextRefused,
    UndoConflict,
)
from ragmemory.ingest.documents import document_id
from ragmemory.search import searching, sync
from ragmemory.search.index.chunk_index import ChunkIndex
from ragmemory.search.index.saving import SavedIndex
from ragmemory.search.sync import IndexSync
from ragmemory.service import MemoryService
from ragmemory.stores.sqlite import Store
from ragmemory.types import Changes, Embedding, Injected, Metadata, Reembedded
from tests.support.memories import ORIGIN, SwitchableEmbedder, service_for

FOX = "# Animals\n\nThe quick brown fox jumps over the lazy dog.\n"
# A chunk for each section: more than are prepared in a batch.
LONG = "".join(f"# Part {number}\n\nSentence{number} stands here alone.\n\n" for number in range(1_500))
PIE = "# Kitchen\n\nBake the apple pie for forty minutes.\n"


@pytest.fixture
def embedder() -> SwitchableEmbedder:
    return SwitchableEmbedder()


@pytest.fixture
async def memory(tmp_path: Path, embedder: SwitchableEmbedder) -> AsyncIterator[MemoryService]:
    with anyio.fail_after(60):
        async with service_for(tmp_path, embedder) as memory:
            yield memory


class GatedEmbedder(SwitchableEmbedder):
    """Embeds the texts of LONG only while `gate` is open, and refuses texts with the word "refused"."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = anyio.Event()
        self.reached = anyio.Event()

    async def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        if any("refused" in text for text in texts):
            self.calls += 1
            raise TextRefused(self.identity, "it is too long")
        if any("Sentence1200 " in text for text in texts):
            self.reached.set()
            await self.gate.wait()
        return await super().embed_documents(texts, titles)


async def put(memory: MemoryService, text: str, **metadata: object) -> Injected:
    return await memory.writer.inject(text, metadata, ORIGIN)


async def uris(memory: MemoryService, question: str, filter: Metadata | None = None) -> list[str]:
    return [hit.uri for hit in (await memory.search.query(question, 8, filter)).hits]


# Inject


async def test_what_was_injected_is_found_with_its_source(memory: MemoryService) -> None:
    injected = await put(memory, FOX, uri="file:///fox.md", tags=["a"])
    assert (injected.uri, injected.status, injected.chunks) == ("file:///fox.md", "added", 1)
    [hit] = (await memory.search.query("Which animal jumps?", 8)).hits
    assert (hit.rank, hit.document_id, hit.uri) == (1, injected.document_id, "file:///fox.md")
    assert (hit.title, hit.heading, hit.start_line, hit.end_line) == ("Animals", "Animals", 1, 3)
    assert hit.text == FOX
    assert hit.metadata == {"uri": "file:///fox.md", "tags": ["a"]}
    assert 0 < hit.score <= 1


LAMPS = "lamp,watts,bought in\n" + "".join(
    f"lamp{number},{number % 9},{1900 + number}\n" for number in range(300)
)


async def test_a_row_of_a_long_table_is_found_by_its_column_and_shown_with_the_header(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        injected = await put(memory, LAMPS, uri="file:///lamps.csv")
        assert injected.chunks > 3
        for _ in range(2):
            hit = (await memory.search.query("watts of lamp250", 3)).hits[0]
            assert "lamp250," in hit.text
            assert not hit.text.startswith("lamp,")
            assert hit.context == "lamp,watts,bought in\n"
            assert (await memory.documents.read(injected.document_id))[1] == LAMPS
            await memory.maintenance.reembed(_nothing)
        assert (await memory.maintenance.verify(_nothing)).ok


CALM = "and that is all that I know of it for now, but one of the others may know a little more"


def talk(thing: str) -> str:
    """A conversation, each turn of which is too long to share a chunk."""
    said = (
        "Anna: I only found two broken lanterns",
        f"Ben: And where did we leave the {thing} last year?\nIt had a red roof",
        "Anna: In the barn, I put it there myself",
        "Ben: Then Clara took it home to mend it",
        "Anna: My uncle is coming on Friday",
    )
    turns = (f"03/05/2024, 10:4{minute} - {words}, {CALM}.\n" for minute, words in enumerate(said))
    return f"# What we lost\n\n{''.join(turns)}"


async def test_a_turn_of_a_conversation_is_found_by_its_neighbours_and_shown_alone(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        ids = {
            thing: (await put(memory, talk(thing), uri=f"file:///{thing}.txt")) for thing in ("kayak", "tent")
        }
        assert {injected.chunks for injected in ids.values()} == {5}
        for _ in range(2):
            for thing, injected in ids.items():
                hits = (await memory.search.query(f"Has Clara taken the {thing} home?", 3)).hits[:2]
                assert {hit.document_id for hit in hits} == {injected.document_id}
                [hit] = [hit for hit in hits if "Clara" in hit.text]
                assert thing not in hit.text
                assert (hit.text, hit.context) == (f"{talk(thing).splitlines()[6]}\n", "")
                assert (hit.start_line, hit.end_line) == (7, 7)
                assert (await memory.documents.read(injected.document_id))[1] == talk(thing)
            await memory.maintenance.reembed(_nothing)
        assert (await memory.maintenance.verify(_nothing)).ok


async def test_turns_keep_their_neighbours_over_an_undo_and_a_restart(tmp_path: Path) -> None:
    async def found(memory: MemoryService) -> list[int]:
        return [hit.start_line for hit in (await memory.search.query("Clara kayak", 8)).hits]

    async with service_for(tmp_path) as memory:
        await put(memory, talk("kayak"), uri="file:///kayak.txt")
        before = await found(memory)
        await put(memory, "# Clara\n\nClara has no kayak.\n", uri="file:///kayak.txt")
        assert await found(memory) != before
        await memory.history.undo(ORIGIN)
        assert await found(memory) == before
    async with service_for(tmp_path) as memory:
        assert await found(memory) == before


async def _nothing(*_: object) -> None:
    """Reports no progress."""


async def test_a_memory_from_before_tables_repeated_their_header_opens_and_changes_with_its_documents(
    tmp_path: Path,
) -> None:
    async with service_for(tmp_path) as memory:
        await put(memory, LAMPS, uri="file:///lamps.csv")
    with closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as old:
        old.execute("ALTER TABLE journal DROP COLUMN host")
        old.execute("DROP TABLE outlines")
        old.execute("DROP TABLE other_embeddings")
        old.execute("DROP TABLE removed_embeddings")
        old.execute("DROP INDEX embeddings_inputs")
        old.execute("ALTER TABLE embeddings DROP COLUMN input")
        old.execute("ALTER TABLE chunks DROP COLUMN places")
        old.execute("ALTER TABLE journal DROP COLUMN before_places")
        old.execute("ALTER TABLE chunks DROP COLUMN context")
        old.execute("ALTER TABLE chunks DROP COLUMN surroundings")
        old.execute("DROP INDEX journal_groups")
        old.execute("ALTER TABLE journal DROP COLUMN write_group")
        old.execute("ALTER TABLE documents DROP COLUMN stamp")
        old.execute("DROP TABLE ingestions")
        old.execute("DROP TABLE sources")
        old.execute("DROP INDEX journal_uris")
        old.execute("PRAGMA user_version = 2")
    async with service_for(tmp_path) as memory:
        assert {hit.context for hit in (await memory.search.query("lamp250", 3)).hits} == {""}
        await put(memory, LAMPS + "lamp300,1,2200\n", uri="file:///lamps.csv")
        assert (await memory.search.query("lamp250", 3)).hits[0].context == "lamp,watts,bought in\n"
        for action in ("updated", "added"):
            assert (await memory.history.undo(ORIGIN)).entry.action == action


async def test_the_same_text_again_changes_nothing_and_costs_no_embedding(
    memory: MemoryService, embedder: SwitchableEmbedder
) -> None:
    await put(memory, FOX, uri="fox")
    again = await put(memory, FOX, uri="fox")
    assert again.status == "unchanged"
    assert again.chunks == 1
    assert embedder.calls == 1
    assert len(await memory.history.journal(10)) == 1


async def test_new_metadata_alone_is_written_without_embedding(
    memory: MemoryService, embedder: SwitchableEmbedder
) -> None:
    await put(memory, FOX, uri="fox", year=1)
    assert (await put(memory, FOX, uri="fox", year=2)).status == "updated"
    assert embedder.calls == 1
    assert await uris(memory, "fox", {"year": 2}) == ["fox"]
    assert await uris(memory, "fox", {"year": 1}) == []


async def test_a_new_text_replaces_the_old_one(memory: MemoryService) -> None:
    await put(memory, FOX, uri="page")
    assert (await put(memory, PIE, uri="page")).status == "updated"
    hits = (await memory.search.query("fox jumps apple pie", 8)).hits
    assert [hit.text for hit in hits] == [PIE]


async def test_the_chunks_of_a_document_join_to_its_text(memory: MemoryService) -> None:
    text = "\n\n".join(f"## Part {i}\n\nSentence {i} of many, über alles. " * 20 for i in range(30))
    injected = await put(memory, text, uri="long")
    assert injected.chunks > 10
    info, shown = await memory.documents.read("long")
    assert shown == text
    assert (info.chunks, info.characters) == (injected.chunks, len(text))


async def test_many_at_once_share_commits_and_all_get_their_own_answer(
    memory: MemoryService, embedder: SwitchableEmbedder
) -> None:
    answers: dict[str, Injected] = {}

    async def one(name: str) -> None:
        answers[name] = await put(memory, f"# {name}\n\ntext of {name}", uri=name)

    async with anyio.create_task_group() as tasks:
        for number in range(64):
            tasks.start_soon(one, f"n{number}")
    assert {answer.uri for answer in answers.values()} == set(answers)
    assert {answer.status for answer in answers.values()} == {"added"}
    assert embedder.calls < 16
    assert (await memory.maintenance.stats()).documents == 64


async def test_two_texts_for_one_uri_at_once_end_with_the_last(memory: MemoryService) -> None:
    answers: list[str] = []

    async def one(text: str) -> None:
        answers.append((await put(memory, text, uri="same")).status)

    async with anyio.create_task_group() as tasks:
        for text in (FOX, PIE, PIE):
            tasks.start_soon(one, text)
    assert answers == ["added", "updated", "unchanged"]
    assert (await memory.documents.read("same"))[1] == PIE


async def test_bad_input_is_refused_before_anything_is_opened(memory: MemoryService, tmp_path: Path) -> None:
    with pytest.raises(BadArgument):
        await put(memory, " ")
    with pytest.raises(BadArgument):
        await put(memory, FOX, tags="red")
    assert not (tmp_path / "memory.db").exists()


# The embedder


async def test_with_the_embedder_down_an_inject_fails_and_stores_nothing(
    memory: MemoryService, embedder: SwitchableEmbedder
) -> None:
    await put(memory, FOX, uri="fox")
    embedder.is_down = True
    with pytest.raises(EmbedderUnavailable, match="turned off"):
        await put(memory, PIE, uri="pie")
    with pytest.raises(EmbedderUnavailable):
        await put(memory, PIE, uri="fox")
    assert (await put(memory, FOX, uri="fox")).status == "unchanged"
    assert (await put(memory, FOX, uri="fox", year=1)).status == "updated"
    assert [info.uri for info in (await memory.documents.page(10))[0]] == ["fox"]
    embedder.is_down = False
    assert (await put(memory, PIE, uri="pie")).status == "added"


async def test_with_the_embedder_down_a_query_goes_by_words_and_says_so(
    memory: MemoryService, embedder: SwitchableEmbedder
) -> None:
    await put(memory, FOX, uri="fox")
    await put(memory, PIE, uri="pie")
    assert (await memory.search.query("pie", 8)).notice == ""
    embedder.is_down = True
    found = await memory.search.query("apple pie", 8)
    assert [hit.uri for hit in found.hits] == ["pie"]
    assert found.notice.startswith("Searched by words alone.")


async def test_another_embedder_than_the_stored_one_is_refused(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        await put(memory, FOX, uri="fox")
    async with service_for(tmp_path, SwitchableEmbedder("other:model")) as memory:
        with pytest.raises(EmbedderMismatch) as caught:
            await put(memory, PIE, uri="pie")
        assert "ragchat memory reembed" in caught.value.hint
        with pytest.raises(EmbedderMismatch):
            await memory.search.query("fox", 8)
        assert (await memory.documents.read("fox"))[1] == FOX
        assert (await put(memory, FOX, uri="fox")).status == "unchanged"


# Query


async def test_an_empty_memory_gives_an_empty_result_without_any_embedder(
    memory: MemoryService, embedder: SwitchableEmbedder
) -> None:
    embedder.is_down = True
    found = await memory.search.query("anything", 8)
    assert (found.hits, found.notice) == ([], "")


@pytest.mark.parametrize(
    "question",
    [
        '"',
        "*",
        "NEAR(a b)",
        "a:b",
        "-x",
        '"unclosed',
        "AND OR NOT",
        "()",
        "\u0000",
        '"a\u0000b"',
        "x" * 5000,
        "🦊*",
    ],
)
async def test_any_text_is_a_question(memory: MemoryService, question: str) -> None:
    await put(memory, FOX, uri="fox")
    found = await memory.search.query(question, 8)
    assert [hit.uri for hit in found.hits] in ([], ["fox"])
    # No question leaves the memory unable to answer the next one.
    assert await uris(memory, f"{question} quick fox") == ["fox"]


@pytest.mark.parametrize(
    "rest",
    ["x" * 1_000_000, " ".join(map(str, range(200_000))), "\u0301\u0316" * 500_000, '"a b" ' * 100_000],
    ids=["one word", "many words", "combining marks", "phrases"],
)
async def test_of_an_endless_question_the_beginning_is_answered_and_it_is_said(
    memory: MemoryService, rest: str
) -> None:
    await put(memory, FOX)
    began = time.process_time()
    found = await memory.search.query(f"brown fox {rest}", 8)
    assert time.process_time() - began < 10  # of all of it: half a minute to hours
    assert found.notice == "Only the first 10,000 characters of the question were used."


async def test_a_quoted_phrase_and_a_prefix_lift_what_holds_them(memory: MemoryService) -> None:
    await put(memory, "The fox is brown and the weather is quick to change.", uri="loose")
    await put(memory, "A quick brown fox.", uri="exact")
    assert (await uris(memory, '"quick brown"'))[0] == "exact"
    assert (await uris(memory, "weath*"))[0] == "loose"


async def test_no_more_hits_than_asked_for(memory: MemoryService) -> None:
    for number in range(6):
        await put(memory, f"Fox number {number} of the forest, with a tail of {number} inches")
    assert len((await memory.search.query("fox", 3)).hits) == 3


async def test_hits_below_the_lowest_score_are_left_out(memory: MemoryService) -> None:
    await put(memory, FOX, uri="fox")
    await put(memory, PIE, uri="pie")
    every = (await memory.search.query("brown fox", 8)).hits
    assert len(every) == 2
    between = (every[0].score + every[1].score) / 2
    assert [hit.uri for hit in (await memory.search.query("brown fox", 8, min_score=between)).hits] == ["fox"]


async def test_a_misspelt_word_is_corrected_by_the_words_of_memory(memory: MemoryService) -> None:
    await put(memory, "The trebuchet stands in the courtyard.", uri="castle")
    await put(memory, PIE, uri="pie")
    found = await memory.search.query("where is the trebuchte?", 8)
    assert found.corrections == {"trebuchte": "trebuchet"}
    assert found.hits[0].uri == "castle"
    assert found.missing == []


async def test_a_correction_is_a_word_of_memory_not_only_another_form_of_its_stem(
    memory: MemoryService,
) -> None:
    await put(memory, "Two guests are allergic.", uri="guests")
    for day in range(3):
        await put(memory, f"The alert of day {day}.", uri=f"alert{day}")  # "alertic" has this stem
    assert (await memory.search.query("who is alergic?", 8)).corrections == {"alergic": "allergic"}


async def test_a_common_word_that_memory_has_not_is_no_error(memory: MemoryService) -> None:
    await put(memory, "The house has a garden.")
    assert (await memory.search.query("mouse", 8)).corrections == {}


async def test_words_that_no_hit_contains_are_missing_and_weigh_most(memory: MemoryService) -> None:
    await put(memory, FOX)
    found = await memory.search.query("Does the fox like Mongolia?", 8)
    assert "mongolia" in found.missing
    assert "fox" not in found.missing
    assert found.weights["mongolia"] == 1.0 > found.weights["fox"] > 0


async def test_texts_are_compared_with_a_query_by_meaning(
    memory: MemoryService, embedder: SwitchableEmbedder
) -> None:
    await put(memory, FOX)
    alike, other, empty = await memory.search.similarities(
        "hot drinks", ["Tea and coffee are served.", "The lawn is mowed on Fridays.", ""]
    )
    assert 1 >= alike > other
    assert empty == 0
    assert await memory.search.similarities("tea", []) == []
    embedder.is_down = True
    with pytest.raises(EmbedderUnavailable):
        await memory.search.similarities("tea", ["coffee"])


async def test_a_bad_filter_is_refused_with_its_key(memory: MemoryService) -> None:
    await put(memory, FOX)
    with pytest.raises(BadArgument, match=r"filter\.tags"):
        await memory.search.query("fox", 8, {"tags": 5})


async def test_an_empty_memory_refuses_a_bad_filter_too(memory: MemoryService) -> None:
    with pytest.raises(BadArgument, match=r"filter\.tags"):
        await memory.search.query("fox", 8, {"tags": 5})


async def test_a_write_that_fails_at_the_commit_fails_none_of_the_others(
    tmp_path: Path, memory: MemoryService
) -> None:
    await put(memory, FOX, uri="fox")
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        connection.execute(
            "CREATE TRIGGER forbid BEFORE INSERT ON documents WHEN new.uri GLOB 'bad*'"
            " BEGIN SELECT RAISE(ABORT, 'the trigger says no'); END"
        )
    refused: list[str] = []

    async def write(service: MemoryService, uri: str) -> None:
        try:
            await put(service, f"The text of {uri}.", uri=uri)
        except NotStored as error:
            refused.append(error.uri)

    names = [f"{'bad' if number % 10 == 0 else 'good'}-{number}" for number in range(100)]
    async with service_for(tmp_path) as other, anyio.create_task_group() as tasks:
        for index, name in enumerate(names):
            tasks.start_soon(write, (memory, other)[index % 2], name)
    good = [name for name in names if name.startswith("good")]
    assert sorted(refused) == sorted(set(names) - set(good))
    found, _ = await memory.documents.page(200, 0, {"uri": "good*"})
    assert sorted(document.uri for document in found) == sorted(good)
    assert len(await memory.history.journal(200)) == 1 + len(good)
    assert await uris(memory, "good 11", {"uri": "good-11"}) == ["good-11"]


# Two at once


async def test_what_another_writes_is_found_at_the_next_query(tmp_path: Path, memory: MemoryService) -> None:
    async with service_for(tmp_path) as other:
        assert await uris(other, "fox") == []
        await put(memory, FOX, uri="fox")
        assert await uris(other, "fox") == ["fox"]
        await put(memory, PIE, uri="fox")
        assert (await other.search.query("apple pie", 8)).hits[0].text == PIE
        await other.writer.forget("fox", ORIGIN)
        assert await uris(memory, "apple pie") == []


# The index


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
    async def check(folder: Path) -> None:
        async with service_for(folder) as memory:
            for number in (1, 17, 49):
                assert (await uris(memory, f"animal{number} jumps"))[0] == f"fox{number}"
            everything = (await memory.search.query("jumps", 100)).hits
            assert {hit.uri for hit in everything} == {f"fox{n}" for n in range(50) if n not in (3, 7)}

    async with service_for(tmp_path) as memory:
        for number in range(50):
            await put(
                memory, f"Animal{number} jumps over word{number} and thing{number}.", uri=f"fox{number}"
            )
        await memory.writer.forget("fox3", ORIGIN)
    async with service_for(tmp_path) as memory:
        await memory.writer.forget("fox7", ORIGIN)
    await check(tmp_path)
    found = 0
    for name in sorted(path.name for path in (tmp_path / "memory.db-index").glob("*.index")):
        size = (tmp_path / "memory.db-index" / name).stat().st_size
        for at in range(0, size, 1 + size // 8):
            copy = tmp_path / f"{name}-{at}"
            copy.mkdir()
            shutil.copy(tmp_path / "memory.db", copy)
            shutil.copytree(tmp_path / "memory.db-index", copy / "memory.db-index")
            data = bytearray((copy / "memory.db-index" / name).read_bytes())
            data[at : at + 64] = bytes(byte ^ 0xFF for byte in data[at : at + 64])
            (copy / "memory.db-index" / name).write_bytes(data)
            caplog.clear()
            await check(copy)
            found += "is damaged" in caplog.text
            await check(copy)
    assert found > 8


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


# Forget and undo


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


# Embedding anew


async def progressed(done: int, total: int) -> None:
    assert 0 < done <= total


async def test_reembedding_gives_a_memory_to_another_embedder(tmp_path: Path, memory: MemoryService) -> None:
    await put(memory, FOX, uri="fox")
    await put(memory, PIE, uri="pie")
    async with service_for(tmp_path, SwitchableEmbedder("other:model")) as other:
        with pytest.raises(EmbedderMismatch):
            await other.search.query("fox", 8)
        kept = SwitchableEmbedder().identity
        assert await other.maintenance.reembed(progressed) == Reembedded(2, "other:model", 2, kept, 2 * 512)
        assert (await uris(other, "quick fox"))[0] == "fox"
        assert (await put(other, "# New", uri="new")).status == "added"
        assert (await other.maintenance.stats()).embedder == "other:model"
    with pytest.raises(EmbedderMismatch):
        await memory.search.query("fox", 8)
    # Going back: only what is newer is embedded.
    assert await memory.maintenance.reembed(progressed) == Reembedded(3, kept, 1, "other:model", 3 * 512)
    assert (await uris(memory, "quick fox"))[0] == "fox"


async def test_other_processes_rebuild_their_index_after_a_reembedding_with_the_same_embedder(
    tmp_path: Path, memory: MemoryService
) -> None:
    await put(memory, FOX, uri="fox")
    assert await uris(memory, "fox") == ["fox"]
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection, connection:
        connection.execute("UPDATE embeddings SET vector = zeroblob(512)")
    async with service_for(tmp_path) as other:
        await other.maintenance.reembed(progressed)
    await memory.search.query("an animal leaps", 8)
    [scored] = [hit.score for hit in (await memory.search.query("an animal leaps", 8)).hits]
    assert scored > 0


async def test_a_reembedding_that_fails_leaves_the_old_embeddings(
    tmp_path: Path, memory: MemoryService
) -> None:
    await put(memory, FOX, uri="fox")
    embedder = SwitchableEmbedder("other:model")
    embedder.is_down = True
    async with service_for(tmp_path, embedder) as other:
        with pytest.raises(EmbedderUnavailable):
            await other.maintenance.reembed(progressed)
    assert await uris(memory, "quick fox") == ["fox"]
    assert (await memory.maintenance.stats()).embedder == SwitchableEmbedder().identity


async def test_what_is_injected_during_a_reembedding_is_embedded_too(
    tmp_path: Path, memory: MemoryService
) -> None:
    await put(memory, FOX, uri="fox")

    async def inject_once(*_: int) -> None:
        await put(memory, PIE, uri="pie")
        await put(memory, FOX + "\nAgain.", uri="fox")

    async with service_for(tmp_path, SwitchableEmbedder("other:model")) as other:
        assert (await other.maintenance.reembed(inject_once)).chunks == 2
        assert (await uris(other, "apple pie"))[0] == "pie"


async def test_reembedding_an_empty_memory_leaves_it_free_for_any_embedder(
    tmp_path: Path, memory: MemoryService
) -> None:
    await put(memory, FOX, uri="fox")
    await memory.writer.forget("fox", ORIGIN)
    assert await memory.maintenance.reembed(progressed) == Reembedded(0, SwitchableEmbedder().identity)
    async with service_for(tmp_path, SwitchableEmbedder("other:model")) as other:
        assert (await put(other, PIE, uri="pie")).status == "added"


async def test_two_reembeddings_at_once_lose_nothing(
    memory: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragmemory.maintenance.reembedding._PAGE", 1)
    for name in ("one", "two", "three"):
        await put(memory, f"# {name}", uri=name)
    reembedded: list[Reembedded] = []

    async def again() -> None:
        reembedded.append(await memory.maintenance.reembed(progressed))

    async def begin_again(done: int, _: int) -> None:
        if done == 1:
            tasks.start_soon(again)
            for _ in range(20):  # Time for the other one to come as far as it can.
                await memory.maintenance.stats()

    async with anyio.create_task_group() as tasks:
        reembedded.append(await memory.maintenance.reembed(begin_again))
    assert [one.chunks for one in reembedded] == [3, 3]
    assert set(await uris(memory, "one two three")) == {"one", "two", "three"}


# Restored from a copy


def restore(copy: Path, memory: Path) -> None:
    """Put a copy in a memory's place, as a careful user does: whole, in one move."""
    shutil.copy(copy, copy.with_suffix(".restored"))
    copy.with_suffix(".restored").replace(memory)


async def backup_of(folder: Path) -> Path:
    """A memory of two documents in `folder`, whose index knows both, and a copy from when there was one."""
    path = folder / "memory.db"
    async with service_for(folder) as memory:
        await put(memory, FOX, uri="fox")
        await memory.search.query("fox", 8)
    shutil.copy(path, folder / "copy.db")
    async with service_for(folder) as memory:
        await put(memory, PIE, uri="pie")
        await memory.search.query("fox", 8)
    return folder / "copy.db"


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


@pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no open file")
async def test_a_memory_that_is_replaced_while_it_is_served_is_reopened(tmp_path: Path) -> None:
    copy = await backup_of(tmp_path)
    async with service_for(tmp_path) as memory:
        assert set(await uris(memory, "fox apple pie")) == {"fox", "pie"}
        await put(memory, "# Lost", uri="lost")
        restore(copy, tmp_path / "memory.db")
        assert await uris(memory, "fox apple pie") == ["fox"]
        await put(memory, PIE, uri="again")
        assert (await uris(memory, "apple pie"))[0] == "again"
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT uri FROM documents ORDER BY number").fetchall() == [
            ("fox",),
            ("again",),
        ]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows deletes no open file")
async def test_a_memory_that_is_deleted_while_it_is_served_starts_empty(
    tmp_path: Path, memory: MemoryService
) -> None:
    await put(memory, FOX, uri="fox")
    for name in ("memory.db", "memory.db-wal", "memory.db-shm"):
        (tmp_path / name).unlink()
    assert (await memory.search.query("fox", 8)).hits == []
    assert (await put(memory, FOX, uri="fox")).status == "added"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no open file")
async def test_a_write_during_which_the_memory_becomes_unusable_fails_and_the_memory_comes_back(
    tmp_path: Path, memory: MemoryService, embedder: SwitchableEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(memory, FOX, uri="fox")
    path, embed = tmp_path / "memory.db", embedder.embed_documents
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # The file alone will be moved.

    async def embed_while_it_becomes_unusable(texts: list[str], titles: list[str]) -> list[Embedding]:
        path.rename(tmp_path / "away")
        path.write_text("no database " * 99, encoding="utf-8")
        with pytest.raises(NotAMemory):
            await memory.search.query("fox", 8)
        return await embed(texts, titles)

    with monkeypatch.context() as patch:
        patch.setattr(embedder, "embed_documents", embed_while_it_becomes_unusable)
        with pytest.raises(MemoryUnusable):
            await put(memory, PIE, uri="pie")
    (tmp_path / "away").replace(path)
    assert await uris(memory, "fox apple pie") == ["fox"]
    assert (await put(memory, PIE, uri="pie")).status == "added"


# Opening


async def test_what_cannot_be_opened_fails_every_call(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_text("no database " * 100, encoding="utf-8")
    async with service_for(tmp_path) as memory:
        for _ in range(2):
            with pytest.raises(NotAMemory):
                await memory.warm_up()
            with pytest.raises(NotAMemory):
                await memory.search.query("fox", 8)
            with pytest.raises(NotAMemory):
                await put(memory, FOX)


async def test_a_memory_that_is_just_being_opened_when_the_service_ends_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, open_store = anyio.Event(), Store.open

    async def opened_after_the_end(store: Store) -> None:
        begun.set()
        with anyio.CancelScope(shield=True):
            await ended.wait()
        await open_store(store)

    async def keep(*, task_status: TaskStatus[MemoryService]) -> None:
        async with service_for(tmp_path) as memory:
            task_status.started(memory)
            await anyio.sleep_forever()

    monkeypatch.setattr(Store, "open", opened_after_the_end)
    ended = anyio.Event()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            memory = await tasks.start(keep)
            tasks.start_soon(memory.warm_up)
            await begun.wait()
            tasks.cancel_scope.cancel()
            ended.set()
    assert connection_threads() == []


@pytest.mark.parametrize(
    "failing", [(SwitchableEmbedder, "aclose"), (IndexSync, "close")], ids=["embedder", "index"]
)
async def test_the_memory_is_closed_even_if_closing_something_else_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: tuple[type, str]
) -> None:
    async def fail(_: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(*failing, fail)
    with pytest.raises(ValueError, match="broken"):
        async with service_for(tmp_path) as memory:
            await put(memory, FOX)
    assert connection_threads() == []


def connection_threads() -> list[str]:
    """Of files that are still open: one that is left would keep the program from ending."""
    threads = [thread for thread in threading.enumerate() if "connection_worker" in thread.name]
    for thread in threads:
        thread.join(2)  # It answers for the last time just before it ends.
    return [thread.name for thread in threads if thread.is_alive()]


async def test_an_embedder_that_cannot_be_made_ready_fails_those_who_need_it_and_not_the_memory(
    memory: MemoryService, embedder: SwitchableEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = threading.Event()

    def fail() -> None:
        tried.set()
        raise TypeError("damaged")

    monkeypatch.setattr(embedder, "warm_up", fail)
    await memory.maintenance.stats()
    await to_thread.run_sync(tried.wait, 10)
    await anyio.wait_all_tasks_blocked()
    assert (await put(memory, FOX)).status == "added"


async def test_a_model_is_loaded_for_a_query_and_not_for_a_list(
    memory: MemoryService, embedder: SwitchableEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "_UNASKED_SECONDS", 3600.0)
    loaded = threading.Event()
    monkeypatch.setattr(embedder, "warm_up", loaded.set)
    await memory.documents.page(9)
    await anyio.wait_all_tasks_blocked()
    assert not loaded.is_set()
    await memory.search.query("fox", 1)
    assert await to_thread.run_sync(loaded.wait, 10)


async def test_the_last_write_before_the_end_is_in_the_saved_index(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        await put(memory, FOX, uri="fox")
    assert any(file.is_file() for file in (tmp_path / "memory.db-index").rglob("*"))


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


# Long documents


async def test_a_short_document_overtakes_a_long_one_which_nothing_finds_before_it_is_whole(
    tmp_path: Path,
) -> None:
    embedder = GatedEmbedder()
    with anyio.fail_after(60):
        async with service_for(tmp_path, embedder) as memory, anyio.create_task_group() as tasks:
            tasks.start_soon(partial(put, memory, LONG, uri="long"))
            await embedder.reached.wait()
            assert (await put(memory, FOX, uri="fox")).status == "added"
            assert await uris(memory, "Sentence3 stands here alone") == ["fox"]
            assert await uris(memory, '"Sentence3 stands"') == ["fox"]
            assert (await memory.maintenance.stats()).documents == 1
            embedder.gate.set()
    async with service_for(tmp_path, embedder) as memory:
        assert (await uris(memory, "Sentence3 stands here alone"))[0] == "long"
        assert (await memory.documents.read("long"))[1] == LONG
        assert (await put(memory, LONG, uri="long")).status == "unchanged"


async def test_a_large_write_returns_when_the_index_has_almost_caught_up(
    memory: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the index lags further with every write of a load, and the next start has to read it all."""
    monkeypatch.setattr(sync, "_MAX_BEHIND", 100)
    reached, gate, returned = anyio.Event(), threading.Event(), anyio.Event()
    apply = ChunkIndex.apply

    def wait(index: ChunkIndex, changes: Changes) -> None:
        from_thread.run_sync(reached.set)
        gate.wait()
        apply(index, changes)

    async def write() -> None:
        await put(memory, "".join(f"# Part {number}\n\nIt is alone.\n\n" for number in range(300)))
        returned.set()

    monkeypatch.setattr(ChunkIndex, "apply", wait)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        try:
            await reached.wait()
            assert not returned.is_set()
        finally:
            gate.set()
        await returned.wait()


async def test_documents_with_one_uri_keep_their_order_behind_a_long_one(tmp_path: Path) -> None:
    embedder = GatedEmbedder()
    with anyio.fail_after(60):
        async with service_for(tmp_path, embedder) as memory:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(put, memory, LONG, uri="doc"))
                await embedder.reached.wait()
                tasks.start_soon(partial(put, memory, FOX, uri="doc"))
                await put(memory, PIE, uri="other")
                embedder.gate.set()
            assert (await memory.documents.read("doc"))[1] == FOX
            assert [(entry.uri, entry.action) for entry in await memory.history.journal(10)] == [
                ("doc", "updated"),
                ("doc", "added"),
                ("other", "added"),
            ]


async def test_a_long_document_whose_caller_is_cancelled_is_worked_on_no_more(tmp_path: Path) -> None:
    embedder = GatedEmbedder()
    with anyio.fail_after(60):
        async with service_for(tmp_path, embedder) as memory:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(put, memory, LONG, uri="doc"))
                await embedder.reached.wait()
                tasks.cancel_scope.cancel()
            calls = embedder.calls
            assert memory.writer.queue.waiting == 0
            assert (await put(memory, FOX, uri="doc")).status == "added"
            assert embedder.calls == calls + 1
            assert await uris(memory, "Sentence3 stands here alone") == ["doc"]
            assert [entry.action for entry in await memory.history.journal(10)] == ["added"]


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch) -> anyio.Event:
    """Set when a sweep that has removed something finds nothing more."""
    swept, sweep, removed = anyio.Event(), Store.sweep, 0

    async def counting_sweep(store: Store) -> bool:
        nonlocal removed
        has_removed = await sweep(store)
        removed += has_removed
        if removed and not has_removed:
            swept.set()
        return has_removed

    monkeypatch.setattr(Store, "sweep", counting_sweep)
    return swept


def chunks_in(folder: Path) -> int:
    """The chunks in the file, hidden ones as well."""
    with closing(sqlite3.connect(folder / "memory.db")) as other:
        [(count,)] = other.execute("SELECT count(*) FROM chunks")
    return int(count)


async def test_what_a_cancelled_load_has_written_is_swept_without_another_write(
    tmp_path: Path, swept: anyio.Event
) -> None:
    embedder = GatedEmbedder()
    with anyio.fail_after(60):
        async with service_for(tmp_path, embedder) as memory:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(put, memory, LONG, uri="doc"))
                await embedder.reached.wait()
                tasks.cancel_scope.cancel()
            await swept.wait()
    assert chunks_in(tmp_path) == 0


async def test_what_a_killed_process_left_is_swept_once_the_memory_is_opened_again(
    tmp_path: Path, swept: anyio.Event
) -> None:
    with anyio.fail_after(60):
        async with service_for(tmp_path) as memory:
            await put(memory, LONG, uri="doc")
        with closing(sqlite3.connect(tmp_path / "memory.db")) as other, other:
            other.execute("UPDATE documents SET hidden = 1, updated_at = '2020-01-01T00:00:00.000+00:00'")
            other.execute("DELETE FROM journal")
        async with service_for(tmp_path) as memory:
            assert (await memory.maintenance.stats()).documents == 0
            await swept.wait()
    assert chunks_in(tmp_path) == 0


async def test_a_long_document_is_updated_forgotten_and_put_back(memory: MemoryService) -> None:
    await put(memory, LONG, uri="doc")
    assert (await put(memory, LONG + "And more.", uri="doc")).status == "updated"
    await memory.history.undo(ORIGIN)
    assert (await memory.documents.read("doc"))[1] == LONG
    assert (await memory.writer.forget("doc", ORIGIN)).chunks == 1_500
    assert await uris(memory, "Sentence3 stands here alone") == []
    await memory.history.undo(ORIGIN)
    assert (await memory.documents.read("doc"))[1] == LONG
    assert (await uris(memory, "Sentence3 stands here alone"))[0] == "doc"


async def test_a_text_that_the_embedder_refuses_fails_alone(tmp_path: Path) -> None:
    embedder = GatedEmbedder()
    failed: list[str] = []

    async def try_to_put(memory: MemoryService, text: str) -> None:
        try:
            await put(memory, text, uri=text)
        except TextRefused:
            failed.append(text)

    with anyio.fail_after(60):
        async with service_for(tmp_path, embedder) as memory:
            async with anyio.create_task_group() as tasks:
                for text in ["one", "two", "is refused", "three", "four"]:
                    tasks.start_soon(try_to_put, memory, text)
            assert failed == ["is refused"]
            assert (await memory.maintenance.stats()).documents == 4


async def test_undo_brings_places_back_and_a_hit_names_them(memory: MemoryService) -> None:
    text, uri = "Bees live in hives.\n\nThe oak is old.\n", "file:///papers/thesis.pdf"
    await memory.writer.inject(text, {"uri": uri}, ORIGIN, places=[(1, "p. 1"), (3, "p. 2")])
    for undo in (False, True):
        if undo:
            await memory.writer.inject("Something else.", {"uri": uri}, ORIGIN)
            await memory.history.undo(ORIGIN)
        [hit] = (await memory.search.query("oak", 1)).hits
        assert (hit.location, hit.places) == ("thesis.pdf p. 1–2", [(1, "p. 1"), (3, "p. 2")])
