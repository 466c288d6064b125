"""What a query finds on real files, and what it says beside the hits."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from msgspec import UNSET

from ragcommon.contract.search import Comparison
from ragmemory.errors import (
    BadArgument,
    EmbedderUnavailable,
    MemoryDamaged,
)
from ragmemory.search import searching
from ragmemory.service import MemoryService
from tests.support.memories import (
    FOX,
    ORIGIN,
    PIE,
    InterruptedEmbedder,
    SwitchableEmbedder,
    put,
    service_for,
    uris,
)


async def test_what_was_injected_is_found_with_its_source(memory: MemoryService) -> None:
    injected = await put(memory, FOX, uri="file:///fox.md", tags=["a"])
    assert (injected.uri, injected.status, injected.chunks) == ("file:///fox.md", "added", 1)
    [hit] = (await memory.search.query("Which animal jumps?", 8)).hits
    assert (hit.rank, hit.document_id, hit.uri) == (1, injected.document_id, "file:///fox.md")
    assert (hit.title, hit.heading, hit.start_line, hit.end_line) == ("Animals", "Animals", 1, 3)
    assert hit.text == FOX
    assert hit.metadata == {"uri": "file:///fox.md", "tags": ["a"]}
    assert 0 < hit.score <= 1


LAWN = "A siren has no place on the lawn, which is mowed on Fridays."
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
        for table in ("leases", "remote_index", "remote_terms", "remote_changes"):
            old.execute(f"DROP TABLE {table}")
        old.execute("DROP TABLE outlines")
        old.execute("DROP TABLE other_embeddings")
        old.execute("DROP TABLE removed_embeddings")
        old.execute("DROP INDEX embeddings_inputs")
        old.execute("ALTER TABLE embeddings DROP COLUMN input")
        old.execute("ALTER TABLE chunks DROP COLUMN headings")
        old.execute("ALTER TABLE chunks DROP COLUMN places")
        old.execute("ALTER TABLE journal DROP COLUMN before_places")
        old.execute("ALTER TABLE chunks DROP COLUMN context")
        old.execute("ALTER TABLE chunks DROP COLUMN surroundings")
        old.execute("DROP INDEX journal_groups")
        old.execute("ALTER TABLE journal DROP COLUMN write_group")
        old.execute("ALTER TABLE documents DROP COLUMN machine")
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


async def test_an_empty_memory_gives_an_empty_result_without_any_embedder(
    memory: MemoryService, embedder: SwitchableEmbedder
) -> None:
    embedder.is_down = True
    found = await memory.search.query("anything", 8)
    assert (found.hits, found.notice) == ([], "")


@pytest.mark.parametrize("is_indexed", [False, True])
async def test_a_memory_without_its_documents_is_not_called_empty(tmp_path: Path, is_indexed: bool) -> None:
    async with service_for(tmp_path, SwitchableEmbedder()) as memory:
        await put(memory, FOX)
        if is_indexed:
            assert (await memory.search.query("Which animal jumps?", 8)).hits
        with closing(sqlite3.connect(tmp_path / "memory.db")) as db, db:
            db.execute("DELETE FROM documents")  # Without foreign keys, which SQLite checks only on request.
        with pytest.raises(MemoryDamaged, match="is damaged at the table documents"):
            await memory.search.query("Which animal jumps?", 8)


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


async def test_a_correction_has_the_accents_of_memory(memory: MemoryService) -> None:
    await put(memory, "Die Kündigungsfrist beträgt drei Monate.", uri="lease")
    found = await memory.search.query("Wie lang ist die Kündigungfrist?", 8)
    assert found.corrections == {"kundigungfrist": "kündigungsfrist"}
    assert "kundigungfrist" not in found.missing


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
    texts = ["Tea and coffee are served.", "The lawn is mowed on Fridays.", ""]
    compared = await memory.search.compare("hot drinks", texts, ["coffee", "Friday"])
    alike, other, empty = compared.similarities
    assert 1 >= alike > other
    assert empty == 0
    assert compared.matches is not UNSET
    (coffee, _), (_, friday), nothing = compared.matches
    assert coffee == pytest.approx(1, abs=1e-3)
    assert 1 > friday > 0.5
    assert nothing == [0, 0]
    assert await memory.search.compare("tea", []) == Comparison([])
    embedder.is_down = True
    with pytest.raises(EmbedderUnavailable):
        await memory.search.compare("tea", ["coffee"])


async def test_a_bad_filter_is_refused_with_its_key(memory: MemoryService) -> None:
    await put(memory, FOX)
    with pytest.raises(BadArgument, match=r"filter\.tags"):
        await memory.search.query("fox", 8, {"tags": 5})


async def test_an_empty_memory_refuses_a_bad_filter_too(memory: MemoryService) -> None:
    with pytest.raises(BadArgument, match=r"filter\.tags"):
        await memory.search.query("fox", 8, {"tags": 5})


async def test_a_model_is_loaded_for_a_query_and_not_for_a_list(
    memory: MemoryService, embedder: SwitchableEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "_LOAD_AFTER_SECONDS", 3600.0)
    loaded = threading.Event()
    monkeypatch.setattr(embedder, "warm_up", loaded.set)
    await memory.documents.page(9)
    await anyio.wait_all_tasks_blocked()
    assert not loaded.is_set()
    await memory.search.query("fox", 1)
    assert await to_thread.run_sync(loaded.wait, 10)


async def test_undo_brings_places_back_and_a_hit_names_them(memory: MemoryService) -> None:
    text, uri = "Bees live in hives.\n\nThe oak is old.\n", "file:///papers/thesis.pdf"
    await memory.writer.inject(text, {"uri": uri}, ORIGIN, places=[(1, "p. 1"), (3, "p. 2")])
    for undo in (False, True):
        if undo:
            await memory.writer.inject("Something else.", {"uri": uri}, ORIGIN)
            await memory.history.undo(ORIGIN)
        [hit] = (await memory.search.query("oak", 1)).hits
        assert (hit.location, hit.places) == ("thesis.pdf p. 1–2", [(1, "p. 1"), (3, "p. 2")])


async def test_a_document_that_is_replaced_during_a_search_is_found(
    tmp_path: Path, memory: MemoryService, memory_url: str, index_url: str
) -> None:
    embedder = InterruptedEmbedder()
    async with service_for(tmp_path, embedder, url=memory_url, index=index_url) as asked:
        await put(memory, FOX, uri="fox", title="Old")
        embedder.meanwhile = partial(put, memory, FOX, uri="fox", title="New")
        assert [hit.title for hit in (await asked.search.query("brown fox", 8)).hits] == ["New"]


async def test_a_document_is_found_by_the_name_of_its_file(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        for name in ("logs/2024-04-05.md", "notes/ferry_timetable.md", "notes/MOORING"):
            await put(memory, "# Overview\n\nNothing of note.\n", uri=f"file:///{name}")
        await put(memory, "# Overview\n\nNothing of note.\n", uri="sha256:ferry")
        await put(memory, "# Party plan\n\nNothing of note.\n", uri="file:///notes/art.md")
        names = {
            "ferry timetable": "ferry_timetable.md",
            "2024-04-05": "2024-04-05.md",
            "mooring": "MOORING",
            "art": "art.md",
        }
        for query, uri in names.items():
            first, *others = (await memory.search.query(query, 3)).hits
            assert first.uri.endswith(uri)
            assert all(first.score > hit.score for hit in others)
