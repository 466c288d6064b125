"""Questions compared with passages, with the real embedder and without any."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from ragchat.errors import MemoryUnavailable
from ragchat.grounding.evidence import gather
from ragchat.grounding.question import Question
from ragcommon.contract.search import Comparison, Hit
from tests.support.memory import memory_in

TEXT = "The kettle is red.\nThe automobile was repaired in May.\n"


def hit(text: str = TEXT, title: str = "") -> Hit:
    return Hit(1, 0.5, 1, "d", "file:///notes/summer_house.md", title, "", 1, 2, text, {})


async def test_a_line_of_only_links_counts_half() -> None:
    lines = ["- [[Car repair|Repairs]], [[May]]", "- [Repaired cars](#repaired-cars)"]
    text = "\n".join([*lines, "See [[Car repair]].", "| [[Car]] | [[repair]] |", 50_000 * "[[A]]" + "b"])
    question = Question.of("Which car was repaired then?")
    (evidence,) = await gather(question, [hit(text)], Unavailable())
    assert [piece.held for piece in evidence.pieces[:4]] == [*2 * [[0.5, 0.5]], *2 * [[1, 1]]]


class Unavailable:
    async def compare(self, query: str, texts: Sequence[str], words: Sequence[str] = ()) -> Comparison:
        del query, texts, words
        raise MemoryUnavailable("gone")


async def test_a_word_matches_the_piece_that_means_the_same(tmp_path: Path) -> None:
    question = Question.of("When was the car repaired?")
    async with memory_in(tmp_path) as memory:
        (evidence,) = await gather(question, [hit()], memory)
    kettle, car = evidence.pieces
    assert TEXT[car.start : car.end] == "The automobile was repaired in May."
    assert car.held == [0, 1]
    assert kettle.matches[0] < car.matches[0] < 1 == car.matches[1]
    assert evidence.late([car]) > evidence.coverage([car]) == pytest.approx(0.5)


async def test_without_memory_only_words_count() -> None:
    question = Question.of("When was the car repaired?")
    (evidence,) = await gather(question, [hit()], Unavailable())
    assert evidence.late(evidence.pieces) == evidence.coverage(evidence.pieces) == pytest.approx(0.5)


class Endless:
    async def compare(self, query: str, texts: Sequence[str], words: Sequence[str] = ()) -> Comparison:
        del query, texts, words
        await anyio.sleep_forever()
        raise AssertionError


async def test_a_memory_that_does_not_answer_in_time_is_not_waited_for() -> None:
    question = Question.of("When was the car repaired?")
    with anyio.fail_after(30):
        (evidence,) = await gather(question, [hit()], Endless(), seconds=0.01)
    assert evidence.late(evidence.pieces) == pytest.approx(0.5)


async def test_the_title_and_the_name_of_the_file_hold_words_for_all_pieces() -> None:
    question = Question.of("Is the kettle of the summer house in Ascona red?")
    (evidence,) = await gather(question, [hit(title="Ascona")], Unavailable())
    assert evidence.coverage(evidence.pieces[:1]) == 1
    assert question.missing(evidence.terms) == []


async def test_words_count_by_weight_and_only_those_that_are_wanted() -> None:
    question = Question.of("red boiler", weights={"red": 0.2, "boiler": 0.6})
    (evidence,) = await gather(question, [hit()], Unavailable())
    assert evidence.coverage(evidence.pieces) == pytest.approx(0.25)
    assert evidence.coverage(evidence.pieces, question.words[1:]) == 0


async def test_the_rows_of_a_table_are_compared_one_by_one() -> None:
    question = Question.of("S3 at noon")
    (table,) = await gather(question, [hit("| S3 | dawn |\n| S4 | noon |\n")], Unavailable())
    (prose,) = await gather(question, [hit("It is S3 at dawn.\nS4 is at noon.\n")], Unavailable())
    assert table.late(table.pieces) == pytest.approx(0.5)
    assert prose.late(prose.pieces) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Daily allowance:\n\n| Absence | Norway |\n| --- | --- |\n| 24 hours | 75 |\n| 8 hours | 50 |\n",
        "Daily;Allowance;Norway\n24 hours;75;34\n",
    ],
)
async def test_the_header_of_a_table_and_its_introduction_hold_words_for_all_rows(text: str) -> None:
    question = Question.of("What is the daily allowance in Norway for 24 hours?")
    uri = "file:///rates.csv" if ";" in text else "file:///rates.docx"
    (evidence,) = await gather(question, [replace(hit(text), uri=uri)], Unavailable())
    (row,) = (one for one in evidence.pieces if text[one.start : one.end].strip("| ").startswith("24"))
    assert evidence.coverage([row]) == 1
    assert evidence.mean([row.held]) < 1


async def test_a_part_of_a_number_or_date_matches_less_than_its_share() -> None:
    question = Question.of("2025-02-07")
    (evidence,) = await gather(question, [hit("2025-02-09\n2025-02-07\n")], Unavailable())
    assert [piece.matches for piece in evidence.pieces] == [[pytest.approx(1 / 3)], [1]]
