"""Questions about a document that they name, asked of a real memory: its beginning is shown."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ragchat.answer import Answer
from ragchat.errors import MemoryUnavailable
from ragchat.memory.client import MemoryClient
from ragchat.turn.beginnings import with_beginning
from ragchat.turn.grounding import judge_passages
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.offline import answer_offline
from ragchat.turn.retrieval import Retrieval, retrieve
from ragchat.turn.topics import topic_of
from tests.support.memory import memory_of

LIMITS = RetrievalLimits(top_k=4, min_score=0.3, seconds=30.0)
TOP = "Mildred Ashworth, fourth printing, Leeds 1904\n\nA machine that lifts water out of mines.\n"
SECTIONS = "".join(
    f"\n## Heron part {n}\n\nBrush the heron. Oil the heron with care, as heron parts of {metal} wear.\n"
    for n, metal in enumerate(("brass", "iron", "copper", "zinc", "tin", "steel"), 1)
)
MANUAL = f"# Heron manual\n\n{TOP}{SECTIONS}"


async def retrieved(question: str, memory: MemoryClient) -> Retrieval:
    return await with_beginning(await retrieve(memory, question, LIMITS), question, memory, LIMITS)


async def ask(message: str, documents: dict[str, str], folder: Path) -> Answer:
    question = topic_of(message)
    async with memory_of(folder, documents) as memory:
        return await answer_offline(question, question, await retrieved(question, memory), memory, LIMITS)


@pytest.mark.parametrize(
    "question",
    [
        "Who wrote the heron manual?",
        "the author of Heron",
        "heron author",
        "When was the heron manual last updated?",
        "How old is the heron manual?",
        "Wer hat das Heron manual geschrieben?",
        "Qui a écrit Heron ?",
        "¿Quién escribió el Heron manual?",
        "What is the heron?",
        "heron",
    ],
)
async def test_the_first_card_is_the_beginning(question: str, tmp_path: Path) -> None:
    answer = await ask(question, {"heron.md": MANUAL}, tmp_path)
    assert TOP.strip() in answer.cards[0].text
    assert answer.cards[0].location.startswith("heron.md:1–")


@pytest.mark.parametrize(("question", "is_shown"), [("Who wrote the heron manual?", True), ("heron", False)])
async def test_front_matter_is_shown_to_questions_for_the_author_only(
    question: str, is_shown: bool, tmp_path: Path
) -> None:
    answer = await ask(question, {"heron.md": f"---\nby: Mildred\n---\n{MANUAL}"}, tmp_path)
    assert ("by: Mildred" in answer.cards[0].text) == is_shown
    assert TOP.strip() in answer.cards[0].text


async def test_the_beginning_is_among_the_passages_for_a_model(tmp_path: Path) -> None:
    question = "Who wrote the heron manual?"
    async with memory_of(tmp_path, {"heron.md": MANUAL}) as memory:
        grounding = await judge_passages(question, question, await retrieved(question, memory), memory)
    assert any(TOP.strip() in one.hit.text for one in grounding.candidates if one.used)


async def test_a_passage_that_defines_the_name_stays_before_it(tmp_path: Path) -> None:
    defining = "\n## Names\n\nA heron is a pump with a long neck. Old pumps were called cranes.\n"
    answer = await ask("What is a heron?", {"heron.md": MANUAL + defining}, tmp_path)
    assert "pump with a long neck" in answer.cards[0].text
    assert TOP.strip() in answer.cards[1].text


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Who oiled the heron?", "heron.md"),
        ("Who wrote the heron of brass?", "heron.md"),
        ("What is the heron?", "pumps-and-cranes-of-the-old-heron-mine.md"),
    ],
)
async def test_other_questions_and_names_are_answered_by_the_best_passage(
    question: str, name: str, tmp_path: Path
) -> None:
    document = MANUAL.replace("# Heron manual", "# Pumps and cranes of the old heron mine") * (
        name != "heron.md"
    )
    async with memory_of(tmp_path, {name: document or MANUAL}) as memory:
        assert (await retrieved(question, memory)).beginning == 0


@pytest.mark.parametrize("question", ["my notes on the heron", "Was habe ich über Heron geschrieben?"])
async def test_notes_on_a_subject_begin_with_the_one_of_its_name(question: str, tmp_path: Path) -> None:
    answer = await ask(question, {"heron.md": f"---\nby: Mildred\n---\n{MANUAL}"}, tmp_path)
    assert TOP.strip() in answer.cards[0].text
    assert "by: Mildred" not in answer.cards[0].text


async def test_the_name_of_a_note_may_begin_with_small_words(tmp_path: Path) -> None:
    notes = {"books, decide.md": "Pick one.\n", "books - how to decide.md": "Toss a coin.\n"}
    answer = await ask("my notes on How to Decide", notes, tmp_path)
    assert "Toss a coin" in answer.cards[0].text


async def test_a_memory_that_does_not_read_the_document_shows_the_best_passages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(_: MemoryClient, document: str, *_others: object) -> None:
        raise MemoryUnavailable(f"{document} is gone.")

    monkeypatch.setattr(MemoryClient, "part", gone)
    answer = await ask("What is the heron?", {"heron.md": MANUAL}, tmp_path)
    assert "Brush the heron" in answer.cards[0].text


@pytest.mark.parametrize("question", ["who wrote " * 20_000, " " * 100_000 + "x", "(" * 100_000])
async def test_a_hostile_question_takes_no_time(question: str, tmp_path: Path) -> None:
    async with memory_of(tmp_path, {"heron.md": MANUAL}) as memory:
        found = await retrieve(memory, "heron", LIMITS)
        started = time.perf_counter()
        assert (await with_beginning(found, question, memory, LIMITS)).beginning == 0
    assert time.perf_counter() - started < 1
