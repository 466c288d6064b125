"""The retriever with the local embedder: what a user with a small memory meets first."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np
import pytest

from ragconfig.settings import load_settings
from ragmemory.embedders.local import DIMENSIONS, LocalEmbedder
from ragmemory.search.index.chunk_index import ChunkIndex
from ragmemory.search.queries import SearchRequest, parse
from ragmemory.search.ranking import Scored
from ragmemory.search.retriever import Retriever
from ragmemory.settings import RankingSettings
from ragmemory.types.changes import Changes, Checkpoint

MODEL = LocalEmbedder()
SETTINGS = load_settings(environ={})
RELEVANT = SETTINGS.tables["retrieval"]["min_score"]


class Notes:
    """A store of one chunk a note, and the retriever that follows it."""

    def __init__(self, *texts: str) -> None:
        self.index = ChunkIndex(DIMENSIONS, SETTINGS.table("ranking", RankingSettings))
        self.retriever = Retriever(self.index)
        self.texts: list[str] = []
        self.removals = 0
        if texts:
            self.add(*texts)

    def add(self, *texts: str, titles: Iterable[str] | None = None, removed: Iterable[int] = ()) -> None:
        names = list(titles or [""] * len(texts))
        embeddings = [row.astype("<f2").tobytes() for row in MODEL.document_model().embed(texts, names)]
        ids = list(range(len(self.texts) + 1, len(self.texts) + len(texts) + 1))
        self.texts += texts
        gone = list(removed)
        self.removals += len(gone)
        self.index.apply(
            Changes(
                Checkpoint(len(self.texts), self.removals),
                ids,
                names,
                [""] * len(ids),
                list(texts),
                [""] * len(ids),
                list(embeddings),
                gone,
            )
        )

    def ask(
        self,
        question: str,
        *,
        allowed: Iterable[int] | None = None,
        boosted: Iterable[int] = (),
        top_k: int = 10,
        words_only: bool = False,
    ) -> list[Scored]:
        parsed = parse(question)
        vector = None if words_only else MODEL.query_model().embed(parsed.text, self.retriever.word_weights)
        ids = None if allowed is None else np.array(list(allowed), np.int64)
        return self.retriever.search(SearchRequest(parsed, vector, MODEL, None, set(boosted), top_k), ids)


KITCHEN = [
    "The soup needs two litres of water, a spoon of salt and an hour on a low flame.",
    "Bread: knead the flour with yeast, let it rest over night, bake at 230 degrees.",
    "Grandmother's apple cake takes five apples, butter, sugar and a pinch of cinnamon.",
]
HOUSE = [
    "The wifi password is taped under the router in the hall.",
    "Our landlord is Mrs Keller, her phone number is 030 555 1234.",
    "The car goes to the garage for inspection every March.",
    "Rubbish is collected on Tuesday, paper every second Friday.",
    "Lisa is allergic to nuts and to penicillin.",
    "The spare key is with the neighbours on the third floor.",
    "Der Zahnarzttermin ist am 4. Mai um neun Uhr in der Praxis Dr. Weber.",
]


@pytest.mark.parametrize("words_only", [False, True], ids=["with vectors", "by words alone"])
@pytest.mark.parametrize(
    ("notes", "question", "expected"),
    [
        (KITCHEN[:1], "How much salt goes into the soup?", 1),
        (KITCHEN[:1], "salt", 1),
        (KITCHEN[:1], "soups", 1),
        (KITCHEN, "How long does the bread rest?", 2),
        (KITCHEN, "what do I need for the apple cake", 3),
        (KITCHEN, "cinnamon?", 3),
        (KITCHEN + HOUSE, "What is the wifi password?", 4),
        (KITCHEN + HOUSE, "Who is our landlord?", 5),
        (KITCHEN + HOUSE, "what is Lisa allergic to", 8),
        (KITCHEN + HOUSE, "Where is the spare key?", 9),
        (KITCHEN + HOUSE, "Wann ist der Zahnarzttermin?", 10),
        (["Die Hauptstadt von Frankreich ist Paris."], "Was ist die Hauptstadt von Frankreich?", 1),
        (["猫坐在垫子上。", "狗在花园里睡觉。"], "猫坐在哪里?", 1),
        (["猫坐在垫子上。", "狗在花园里睡觉。"], "狗", 2),
        (["Paris is the capital of France."], "Paris is the capital of France.", 1),
    ],
)
def test_a_small_memory_answers_what_it_holds(
    notes: list[str], question: str, expected: int, words_only: bool
) -> None:
    best = Notes(*notes).ask(question, words_only=words_only)[0]
    assert best.chunk_id == expected
    assert best.score >= RELEVANT


@pytest.mark.parametrize("notes", [KITCHEN[:1], KITCHEN, KITCHEN + HOUSE], ids=["1", "3", "10"])
@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of Mongolia?",
        "who won the world cup in 1998",
        "explain quantum entanglement",
        "Wie hoch ist der Eiffelturm?",
        "黑豹队的防守丢了多少分？",
        "asdf qwer zxcv",
        "hello",
        "the of and",
        "What is this?",
        "und was ist das",
    ],
)
def test_what_a_small_memory_does_not_hold_scores_below_the_threshold(
    notes: list[str], question: str
) -> None:
    assert all(hit.score < RELEVANT for hit in Notes(*notes).ask(question))


def test_scores_lie_between_0_and_1_and_never_rise_with_rank() -> None:
    hits = Notes(*KITCHEN, *HOUSE).ask("soup with salt and bread for Lisa")
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize("question", ["", "   ", "?!", "\x00", '"', "*"])
def test_a_question_without_a_word_finds_nothing_or_little(question: str) -> None:
    assert all(hit.score < RELEVANT for hit in Notes(*KITCHEN).ask(question))


def test_an_empty_memory_finds_nothing() -> None:
    assert Notes().ask("anything") == []


def test_the_same_text_is_found_once() -> None:
    notes = Notes(KITCHEN[0], KITCHEN[1], KITCHEN[0].upper(), KITCHEN[0] + "\n")
    assert [hit.chunk_id for hit in notes.ask("salt for the soup")][:2] == [1, 2]


def test_texts_that_differ_in_a_number_are_both_found() -> None:
    notes = Notes("Invoice 4711: we owe Keller 120 euros.", "Invoice 4712: we owe Keller 990 euros.")
    assert len(notes.ask("invoice Keller")) == 2


def test_only_allowed_chunks_are_found() -> None:
    notes = Notes(*KITCHEN)
    assert {hit.chunk_id for hit in notes.ask("soup, bread or cake", allowed=[2, 3, 99])} == {2, 3}
    assert notes.ask("soup", allowed=[]) == []


def test_what_holds_a_quoted_phrase_comes_first() -> None:
    notes = Notes("red fox fox fox in the red wood", "the quick red fox", "a fox")
    assert notes.ask('"quick red" fox', boosted=[2])[0].chunk_id == 2
    assert notes.ask("fo*", boosted=[3])[0].chunk_id == 3


def test_a_chunk_that_is_boosted_but_not_allowed_is_not_found() -> None:
    assert all(hit.chunk_id != 2 for hit in Notes(*KITCHEN).ask("soup", boosted=[2], allowed=[1, 3]))


def test_titles_are_searched() -> None:
    notes = Notes(KITCHEN[0])
    notes.add("It was built in 1889.", "It was built in 1973.", titles=["Eiffel Tower", "Opera House"])
    assert notes.ask("when was the opera house built")[0].chunk_id == 3


@pytest.mark.parametrize("rounds", [1, 12])
def test_removed_chunks_are_never_found_again(rounds: int) -> None:
    notes = Notes(*HOUSE)
    for _ in range(rounds):
        last = len(notes.texts)
        notes.add(KITCHEN[0], removed=[last, 1000])
    assert notes.ask("soup water flame")[0].chunk_id == len(notes.texts)
    assert len(notes.index) == len(HOUSE)
    assert all(
        hit.chunk_id < len(HOUSE) or hit.chunk_id == len(notes.texts) for hit in notes.ask("soup key car")
    )


@pytest.mark.parametrize("question", ["retry_after", "retryAfter", "RetryAfter", "what is the retryAfter?"])
def test_an_identifier_is_found_in_every_spelling_before_its_parts(question: str) -> None:
    notes = Notes(
        *KITCHEN,
        *HOUSE,
        "We retry a job when the queue is empty, and after lunch.",
        "retry_after = 30\n",
        "const retryAfter = 30;\n",
        "class RetryAfter(Header): ...\n",
    )
    best = [found.chunk_id for found in notes.ask(question)[:4]]
    first = len(KITCHEN) + len(HOUSE) + 1
    assert set(best[:3]) == {first + 1, first + 2, first + 3}
    assert best[3] == first


def test_a_part_of_an_identifier_finds_it() -> None:
    notes = Notes(*KITCHEN, *HOUSE, "def parseHttpResponse(data): ...\n")
    assert notes.ask("which function handles a response?")[0].chunk_id == len(KITCHEN) + len(HOUSE) + 1


@pytest.mark.parametrize("question", ["ZagiAQC", "What is ZagiAQC?"])
def test_the_passage_with_the_only_word_asked_for_comes_before_those_with_a_part_of_it(question: str) -> None:
    notes = Notes(*(f"# Part {n}\n\nPart {n} tells of p{n}q." for n in range(300)))
    notes.add(*(f"Nothing but {name}AQC and {name}AQC again." for name in ("Sadalu", "Nebu", "Rimo")))
    notes.add("# Report\n\nThe finding of report ZagiAQC is written down here." + " More of it." * 200)
    assert notes.ask(question, top_k=3)[0].chunk_id == 304


@pytest.mark.parametrize(
    ("question", "other", "asked"),
    [
        ("What does CVE-2021-44228 affect?", "CVE-2021-34527", "CVE-2021-44228"),
        ("Which machine has the address 192.168.1.12?", "192.168.1.10", "192.168.1.12"),
        ("How is the kernel 6.12.3 built?", "6.12.9", "6.12.3"),
    ],
)
def test_a_name_with_numbers_is_found_before_others_like_it(question: str, other: str, asked: str) -> None:
    notes = Notes(*KITCHEN, *HOUSE)
    notes.add(*(f"{question.replace(asked, other)} {name} asked for {other}." for name in ("Ann", "Ben")))
    notes.add(f"The list of last week has the router, the printer, {asked} and the lamp in the hall.")
    assert notes.ask(question)[0].chunk_id == len(notes.texts)


@pytest.mark.parametrize(
    ("question", "other", "asked"),
    [
        (
            "How many doses of the Covid-19 vaccine are needed?",
            "In 2020 we paid 19 euros for a Covid test; the fridge of the vaccine was broken.",
            "The vaccine against the coronavirus needs two doses, and a booster for adults.",
        ),
        (
            "What did the board decide on 9 March 2025? 2025-03-09",
            "2025-03-21: the board met and did not decide. Called at 09:15.",
            "On 9 March 2025 the board decided to sell the old boat house to the town.",
        ),
    ],
)
def test_a_date_or_a_word_with_one_number_may_be_written_otherwise(
    question: str, other: str, asked: str
) -> None:
    notes = Notes(*KITCHEN, *HOUSE, other, asked)
    assert notes.ask(question)[0].chunk_id == len(notes.texts)


def test_many_names_with_numbers_take_no_time() -> None:
    notes = Notes(*KITCHEN, *HOUSE)
    started = time.perf_counter()
    notes.ask(" ".join(f"A-{n}-{n}" for n in range(10_000)) + 100_000 * "1" + "-")
    assert time.perf_counter() - started < 10
