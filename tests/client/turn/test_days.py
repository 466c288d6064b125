"""Questions about a day or a month, asked of a real memory with a journal: its notes are shown."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest

from ragchat.turn.days import day_of
from ragchat.turn.limits import Budget, TurnLimits
from ragchat.turn.turn import take_turn
from ragchat.turn.types import Turn
from tests.client.turn.test_beginnings import LIMITS, ask, retrieved
from tests.support.memory import memory_of

DAYS = {
    "journal/2023_07_08.md": "- Bought a heron.\n\n# Log\n\nIt sings.\n",
    "journal/2023_11_08.md": "Seen on 2023-11-08 at 2.07, July weather.\n",
    "2023-07-08 minutes of the pump club.md": "What did the club do? It did nothing on 8 July 2023.\n",
    "2023-07-10 invoice.md": "Of 10 July: 300 euros.\n",
}


@pytest.mark.parametrize(
    "question",
    [
        "What did I do on 8 July 2023?",
        "what did I write on 2023-07-08",
        "7/8/2023",
        "Was habe ich am 8. Juli 2023 gemacht?",
        "Qu'est-ce que j'ai fait le 8 juillet 2023 ?",
        "O que fiz em 8 de julho de 2023?",
    ],
)
async def test_a_question_about_a_day_is_answered_by_its_note(question: str, tmp_path: Path) -> None:
    answer = await ask(question, DAYS, tmp_path)
    assert answer.cards[0].location.startswith("2023_07_08.md:1–")
    assert "Bought a heron" in answer.cards[0].text
    assert "It sings" in answer.cards[0].text
    assert len(answer.cards) == 1
    assert answer.grounded


@pytest.mark.parametrize(("question", "ago"), [("What did I do yesterday?", 1), ("Was war heute?", 0)])
async def test_a_day_may_be_named_from_today(question: str, ago: int, tmp_path: Path) -> None:
    day = datetime.date.today() - datetime.timedelta(ago)
    answer = await ask(question, DAYS | {f"{day}.md": "Fed the swans.\n"}, tmp_path)
    assert "Fed the swans" in answer.cards[0].text


async def test_a_weekday_is_the_last_one_of_its_name(tmp_path: Path) -> None:
    day = datetime.date.today() - datetime.timedelta(7)
    answer = await ask(f"what did I do last {day:%A}", DAYS | {f"{day}.md": "Fed the swans.\n"}, tmp_path)
    assert "Fed the swans" in answer.cards[0].text


@pytest.mark.parametrize(
    "question",
    [
        "What did the club decide on 8 July 2023?",
        "What did I do on 9 July 2023?",
        "What happened on 10 July 2023?",
        "What happened since 8 July 2023?",
        "Was war vor dem 8. Juli 2023?",
        "What happened between 8 July 2023 and 10 July 2023?",
    ],
)
async def test_a_question_for_more_than_a_day_is_answered_by_the_best_passage(
    question: str, tmp_path: Path
) -> None:
    async with memory_of(tmp_path, DAYS) as memory:
        assert (await retrieved(question, memory)).beginning == 0


@pytest.mark.parametrize("question", ["What did I do on 8 July?", "Was war am 8. Juli?"])
async def test_a_day_without_a_year_is_that_of_the_last_one_with_a_note(
    question: str, tmp_path: Path
) -> None:
    answer = await ask(question, DAYS | {"2021-07-08.md": "- Rain.\n"}, tmp_path)
    assert "Bought a heron" in answer.cards[0].text


MONTHS = {
    "2023_07_08.md": "---\nmood: 3\n---\n\n# Habits\n\n- [ ] run five miles\n\n# Log\n\nBought a heron.\n",
    "2023_07_01.md": "- Painted the old shed\n- It dries.\n",
    "2023_07_09.md": "- [[Herons]]\n",
    "2022_07_03.md": "- Sold the old shed.\n",
    "2023_08_01.md": "- Fed the old heron.\n",
    "2023-07-20-invoice.md": "Three hundred euros, due in August.\n",
    "herons.md": "Herons may fly in July 2023.\n",
}
JULY = """\
- **2023-07-01**: Painted the old shed … [1]
- **2023-07-08**: Bought a heron. [2]
- **2023-07-09**: [[Herons]] [3]"""


@pytest.mark.parametrize(
    "question",
    ["What did I do in July 2023?", "what happened in July", "Was habe ich im Juli gemacht?", "July 2023"],
)
async def test_a_month_gets_a_line_of_each_of_its_notes(question: str, tmp_path: Path) -> None:
    answer = await ask(question, MONTHS, tmp_path)
    assert answer.text == JULY
    assert answer.grounded
    assert [one.location for one in answer.citations] == [
        "2023_07_01.md:1",
        "2023_07_08.md:11",
        "2023_07_09.md:1",
    ]


async def test_a_month_gets_all_of_its_notes_whatever_their_length_and_number(tmp_path: Path) -> None:
    page = "\n\n".join(f"# Part {n}\n\n" + f"Fed the swans of pond {n}. " * 40 for n in range(6))
    days = [f"{year}-07-{day:02}" for year in (2021, 2022, 2023) for day in range(1, 32)]
    answer = await ask("what happened in July", {f"{day}.md": page for day in days}, tmp_path)
    shown = re.findall(r"\*\*(.+?)\*\*: Fed the swans of pond 0", answer.text)
    assert shown == days[-31:]


@pytest.mark.parametrize(
    ("before", "asked", "is_of_july"),
    [
        ("What did I do in June 2023?", "and in July 2023?", True),
        ("Which heron flew in June 2023?", "and in July 2023?", False),
        ("Which heron flew in June 2023?", "What happened in July 2023?", True),
    ],
)
async def test_a_follow_up_gets_notes_if_the_question_before_did(
    before: str, asked: str, is_of_july: bool, tmp_path: Path
) -> None:
    async with memory_of(tmp_path, MONTHS | {"2023-06-05.md": "A heron flew over the lake.\n"}) as memory:
        history = list[Turn]()
        for question in (before, asked):
            history.append(
                await take_turn(
                    question,
                    session_id="s",
                    history=history,
                    memory=memory,
                    answerer=None,
                    limits=TurnLimits(LIMITS, Budget(8000, 500, 2000), rounds=2),
                    emit=lambda _: None,
                )
            )
    assert (history[-1].answer.text == JULY) is is_of_july


@pytest.mark.parametrize(
    ("question", "ago"), [("What did I do last week?", 7), ("Was war diese Woche?", 0), ("last month", 32)]
)
async def test_a_week_or_a_month_may_be_named_from_today(question: str, ago: int, tmp_path: Path) -> None:
    today = datetime.date.today()
    monday = today - datetime.timedelta(today.weekday())
    day = today.replace(day=1) - datetime.timedelta(1) if ago > 7 else monday - datetime.timedelta(ago)
    others = {f"{monday + datetime.timedelta(days)}.md": f"Fed a goat {days}.\n" for days in (-90, 14)}
    answer = await ask(question, MONTHS | others | {f"{day}.md": "Fed the swans.\n"}, tmp_path)
    assert answer.text == f"- **{day}**: Fed the swans. [1]"


@pytest.mark.parametrize(
    "question", ["may I fly", "What did the heron eat in July 2023?", "in June 2023", "since July 2023"]
)
async def test_other_questions_get_no_notes_of_a_month(question: str, tmp_path: Path) -> None:
    assert "- **20" not in (await ask(question, MONTHS, tmp_path)).text


@pytest.mark.parametrize("question", ["What did I do last week?", "yesterday", "Was war gestern?"])
async def test_a_time_without_notes_is_not_answered_by_the_words_for_it(
    question: str, tmp_path: Path
) -> None:
    documents = {"plan.md": "What I did last week and yesterday: yoga. Was war gestern? Nichts.\n"}
    assert not (await ask(question, documents, tmp_path)).grounded


async def test_a_weekday_may_be_that_of_a_timetable(tmp_path: Path) -> None:
    answer = await ask("What is on Monday?", {"yoga.md": "Yoga is on Monday at six.\n"}, tmp_path)
    assert answer.grounded


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("2023_07_08.md", "2023-07-08"),
        ("2023-07-08%20Sat.md", "2023-07-08"),
        ("2023/07/08.md", "2023-07-08"),
        ("Tagebuch%202023-07-08.md", "2023-07-08"),
        ("2023-07-08%20minutes.md", ""),
        ("invoice-2023-07-08.pdf", ""),
        ("IMG_20230708.jpg", ""),
        (100_000 * "1", ""),
    ],
)
def test_a_note_of_a_day_has_a_name_that_says_nothing_else(name: str, day: str) -> None:
    assert day_of(f"file:///home/{name}") == day
