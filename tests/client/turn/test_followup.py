"""Follow-up questions find what the conversation is about; others stay as they are."""

from __future__ import annotations

import msgspec
import pytest

from ragchat.answer import Card
from ragchat.grounding.types import Citation
from ragchat.turn.followup import depends, question_of, refers_back, search_text
from ragchat.turn.types import Trace
from ragcommon.text.rules import MAX_QUERY_CHARACTERS
from tests.support.turns import hit, turn

FOLLOW_UPS = [
    "and in 2019?",
    "why?",
    "who wrote it?",
    "What about Berlin?",
    "Where was she born?",
    "Who cooks?",
    "welche Farbe hat es?",
    "what happened in April with it?",
    "the same for 2019",
    "Berlin?",
    "How tall is it?",
    "When did he move there?",
    "Tell me more",
    "How long does that guarantee on the gearbox last?",
    "Where did the second of them go to school?",
    "can you explain that in more detail?",
    "For how many days?",
    "What is the price?",
    "What was broken then?",
    "do we need to bring anything for it",
    "How does it compare to Postgres?",
    "Und in 2019?",
    "Wann wurde er geboren?",
    "Was ist mit dem Preis?",
    "Et en 2019 ?",
    "¿Y en 2019?",
    "2019年呢?",
    "他是谁?",
    "那上海呢？",
]
STAND_ALONE = [
    "What is photosynthesis?",
    "What is my ferritin?",
    "Wann war mein Kurs?",
    "Who is the CEO?",
    "Is it true that Tesla moved to New York?",
    "When did Gina get her tattoo?",
    "it is raining, which umbrella brand does Maria prefer?",
    "Nennen Sie ein Luxussegment von Toyota.",
    "Was war Huihui?",
    "How much revenue did Acme make in 2018?",
    "加那利群岛在哪个大陆沿岸？",
    "什么是光合作用？",
    "Who maintains Qdrant?",
    "What does a crane do that lifts more than nine tonnes?",
    "quicksort implementation in python",
]


@pytest.mark.parametrize("question", FOLLOW_UPS)
def test_a_follow_up_is_recognised(question: str) -> None:
    assert depends(question)


@pytest.mark.parametrize("question", STAND_ALONE)
def test_an_independent_question_is_recognised(question: str) -> None:
    assert not depends(question)


def test_a_follow_up_carries_the_content_words_of_the_question_before() -> None:
    asked = search_text("and in 2019?", [turn("How much revenue did Acme make in 2018?")])
    assert asked == "and in 2019? 2019 revenue Acme make"


def test_a_chain_of_follow_ups_keeps_what_it_began_with() -> None:
    first = turn("Who founded Acme?")
    second = turn("and when?", query=search_text("and when?", [first]))
    assert search_text("where?", [first, second]) == "where? founded Acme"


def test_the_title_that_was_cited_is_carried_too() -> None:
    before = turn("Who invented the coil?", cited=[Citation.of(1, hit("…", title="Nikola Tesla"), "")])
    assert search_text("Where was he born?", [before]) == "Where was he born? born invented coil Nikola Tesla"


def test_a_stand_alone_question_is_searched_as_it_is() -> None:
    question = "What is the tallest mountain in Japan?"
    assert search_text(question, [turn("Who founded Acme?")]) == question


def test_the_first_question_is_searched_as_it_is() -> None:
    assert search_text("and in 2019?", []) == "and in 2019?"


@pytest.mark.parametrize(
    ("question", "day"),
    [
        ("Was war am 3. März 2025?", "2025-03-03"),
        ("What did I do on March 3, 2025?", "2025-03-03"),
        ("le 14 février 2025", "2025-02-14"),
        ("14 de julho de 2025", "2025-07-14"),
        ("il 14 luglio 2025", "2025-07-14"),
        ("notes of 9.1.2025", "2025-01-09"),
        ("notes of ９/９/２０２５", "2025-09-09"),
        ("notes of 3/4/2025", "2025-04-03 2025-03-04"),
        ("the power used in May 2024", "2024-05"),
        ("Umsatz im März 2024 und Sept. 2025", "2024-03 2025-09"),
        ("les ventes de février de 2024", "2024-02"),
    ],
)
def test_a_date_is_also_searched_as_files_have_it_in_their_names(question: str, day: str) -> None:
    assert search_text(question, []) == f"{question} {day}"


@pytest.mark.parametrize(
    "question",
    [
        "2025-03-03?",
        "in 2025-03 or March",
        "Room 2025",
        "on March 3",
        "at 10.0.0.12 or 1.2.24",
        "30 February 2025",
        "٩ March",
    ],
)
def test_what_is_no_day_or_is_written_so_already_is_searched_as_it_is(question: str) -> None:
    assert search_text(question, []) == question


def test_carried_words_are_bounded() -> None:
    before = turn(" ".join(f"word{chr(97 + i)}" for i in range(26)))
    assert len(search_text("why?", [before]).split()) == 13


def test_a_question_of_many_pages_is_not_a_follow_up() -> None:
    question = "What about this log? " + "line " * MAX_QUERY_CHARACTERS
    assert search_text(question, [turn("Who founded Acme?")]) == question


def test_only_the_first_part_of_a_very_long_question_is_carried() -> None:
    before = turn("Who founded Acme? ".ljust(MAX_QUERY_CHARACTERS) + "Umbrella")
    assert search_text("and when?", [before]) == "and when? founded Acme"


def test_a_follow_up_after_small_talk_goes_on_with_the_question_before() -> None:
    thanks = msgspec.structs.replace(turn("thanks"), trace=Trace())
    assert search_text("and espresso?", [turn("How hot is green tea?"), thanks]).endswith("hot green tea")


@pytest.mark.parametrize(
    ("message", "question"),
    [
        ("thanks, and the price?", "and the price?"),
        ("Hi there! Thanks. When was it built?", "When was it built?"),
        ("ok so who wrote it?", "so who wrote it?"),
        ("danke, und der Preis?", "und der Preis?"),
        ("thanks for the boiler, and the price?", "thanks for the boiler, and the price?"),
        ("ok, ", "ok, "),
    ],
)
def test_small_talk_before_a_question_is_no_part_of_it(message: str, question: str) -> None:
    assert question_of(message, []) == question


def test_any_amount_of_small_talk_may_come_before_a_question() -> None:
    assert question_of("thanks, " * 2_000 + "why?", []) == "why?"


@pytest.mark.parametrize(
    ("message", "question"),
    [
        ("no, Berlin", "How warm was Oslo in 2023? Berlin"),
        ("not Oslo, Berlin", "How warm was in 2023? Berlin"),
        ("Not 2023, but 2024", "How warm was Oslo in 2024"),
        ("nicht Oslo sondern Berlin", "How warm was in 2023? Berlin"),
        ("not working, what now?", "not working, what now?"),
        ("no, I meant the rain", "How warm was Oslo in 2023? the rain"),
        ("nein, nachts", "How warm was Oslo in 2023? nachts"),
        ("no, where is Berlin?", "where is Berlin?"),
        ("no results are shown", "no results are shown"),
    ],
)
def test_a_correction_asks_the_last_question_again(message: str, question: str) -> None:
    assert question_of(message, [turn("How warm was Oslo in 2023?")]) == question


@pytest.mark.parametrize(
    ("question", "refers"), [("no, Berlin", True), ("and in Berlin?", True), ("Who maintains Qdrant?", False)]
)
def test_a_correction_and_a_follow_up_refer_to_the_question_before(question: str, *, refers: bool) -> None:
    assert refers_back(question, [turn("How warm was Oslo?")]) is refers


def test_without_a_question_before_there_is_nothing_to_correct() -> None:
    assert question_of("not 2023, 2024", []) == "not 2023, 2024"


def test_the_number_of_a_source_stands_for_its_title() -> None:
    before = turn("What are the rules?", cited=[Citation.of(2, hit("…", title="Statutes"), "")])
    assert question_of("what do [2] and [3] say about fees?", [before]).startswith(
        "what do Statutes and [3] say"
    )


def test_a_question_of_few_words_about_what_was_shown_goes_on_with_it() -> None:
    card = Card(1, "films.csv:1–3", "", "title, year, box office", (0, 0), 1.0, 1)
    before = turn("Who directed Capote?")
    shown = msgspec.structs.replace(before, answer=msgspec.structs.replace(before.answer, cards=[card]))
    assert search_text("box office?", [shown]) == "box office? box office directed Capote"
    assert search_text("box number?", [shown]) == "box number?"
