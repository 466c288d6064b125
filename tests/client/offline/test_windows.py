"""Windows of passages: which are quoted, and how far they reach."""

from __future__ import annotations

from msgspec.structs import replace

from ragchat.offline.evidence import Question
from ragchat.offline.structure import Kind
from ragchat.offline.windows import (
    MAX_NEAREST,
    MAX_UNITS,
    NEAREST_WORDS,
    best_windows,
    nearest_windows,
    windows_to_compare,
)
from ragchat.offline.words import word_count
from ragchat.types import Hit
from tests.support.turns import hit


def quotes(question: str, *hits: Hit) -> list[str]:
    return [window.text for window in best_windows(Question.of(question), hits)]


def test_the_sentence_beside_the_one_with_the_words_is_quoted_with_it() -> None:
    passage = hit("The council has refused the mast. It would disturb the radio beacon.")
    assert quotes("Why was the mast refused by the council?", passage) == [passage.text]


def test_a_page_that_was_converted_to_markdown_is_prose_whatever_its_suffix() -> None:
    passage = replace(hit("The ferry leaves at eight."), uri="file:///ferry.html")
    converted = replace(passage, metadata={"media_type": "text/markdown"})
    kinds = [
        best_windows(Question.of("When does the ferry leave?"), [one])[0].kind for one in (passage, converted)
    ]
    assert kinds == [Kind.CODE, Kind.SENTENCE]


def test_titles_headings_and_mail_headers_are_never_quoted_alone() -> None:
    passage = hit(
        "# Boiler pressure\n\nFrom: Ann\nSubject: boiler pressure\n\nBoiler pressure\n\n"
        "Keep it between 1.2 and 1.8 bar."
    )
    assert quotes("What is the boiler pressure?", passage) == ["Keep it between 1.2 and 1.8 bar."]
    assert quotes("What is the boiler pressure?", hit("# Boiler pressure\n\n---\n")) == []


def test_of_two_passages_the_better_one_comes_first_unless_the_words_say_otherwise() -> None:
    first = hit("The boiler is serviced in March, by Carl.", chunk_id=1, score=0.9)
    second = hit("The boiler is serviced in June, each year.", chunk_id=2, score=0.5)
    third = hit("The old boiler needs 1.2 bar.", chunk_id=3, score=0.3)
    assert quotes("When is the boiler serviced?", second, first)[0] == first.text
    assert quotes("How many bar does the old boiler need?", first, third)[0] == third.text


def test_words_of_the_heading_count_but_less_than_those_of_the_text() -> None:
    under = hit("It must stay above 1.2 bar.", chunk_id=1, heading="Flat > Boiler")
    beside = hit("It must stay above 3 bar.", chunk_id=2, heading="Car > Tyres")
    said = hit("The boiler must stay above 1.4 bar.", chunk_id=3, heading="Old")
    assert quotes("How many bar does the boiler need?", beside, under)[0] == under.text
    assert quotes("How many bar does the boiler need?", under, said)[0] == said.text


def test_one_row_of_a_table_is_quoted() -> None:
    rows = "\n".join(f"| skis {days} days | {days * 9} euros |" for days in range(1, 6))
    passage = hit(f"| gear | price |\n|---|---|\n{rows}")
    assert quotes("What do skis for 3 days cost?", passage)[0] == "| skis 3 days | 27 euros |"


def test_a_row_from_inside_a_table_has_the_header_and_its_own_place() -> None:
    rows = "| ash | 40 |\n| oak | 300 |\n| elm | 90 |\n"
    table = replace(hit(rows), context="| tree | age in years |\n|---|---|\n")
    [window] = best_windows(Question.of("What age is the oak?"), [table])
    assert window.text == "| oak | 300 |"
    assert "age in years" in window.units[window.first].context


def test_the_header_of_a_mail_answers_only_questions_about_the_mail() -> None:
    passage = hit("From: Ann Lee\nTo: Bob\nSubject: the tent\n\nThe tent is broken, and Carl repairs it.")
    assert quotes("Who repairs the tent?", passage) == ["The tent is broken, and Carl repairs it."]
    assert quotes("Who wrote the mail about the tent?", passage)[0].startswith("From: Ann Lee")


def test_settings_are_quoted_without_those_of_another_parent() -> None:
    passage = replace(hit("heron:\n  cpu: 4\negret:\n  limit: 80\n"), uri="file:///a.yaml")
    assert quotes("What is the limit of egret?", passage) == ["egret:\n  limit: 80"]


def test_a_window_knows_its_lines() -> None:
    passage = replace(hit("Ash is old.\n\nElm is new.\n\nAsh is old, too."), start_line=11)
    [window] = best_windows(Question.of("How new is elm?"), [passage])
    assert window.lines == (13, 13)


def test_a_quotation_is_no_longer_than_is_needed() -> None:
    sentences = " ".join(f"Sentence {number} says something about the garden." for number in range(30))
    passage = hit(f"The boiler needs 1.2 bar. {sentences}")
    (quote,) = quotes("How many bar does the boiler need?", passage)
    assert quote.startswith("The boiler needs 1.2 bar.")
    assert len(quote.split()) <= 60


def test_the_new_word_of_a_follow_up_may_only_name_the_document() -> None:
    insured = hit("The firm is insured for eight million pounds.", title="Contract for the hotel")
    named = hit("Hotel Bellevue, Main Street", title="Contract for the hotel", chunk_id=2)
    asked = Question.of("and for the hotel?", "and for the hotel? insurance firm insured")
    assert best_windows(asked, [named, insured])[0].hit is insured


def test_where_one_window_holds_all_that_is_asked_a_worse_one_is_not_quoted() -> None:
    due = hit("The fee for the berth is due on 1 April.", chunk_id=1)
    other = hit("A fee for the berth of 640 euros is fair.", chunk_id=2)
    assert quotes("When is the fee for the berth due?", due, other) == [due.text]
    apart = hit("The berth is in Kiel, at jetty C.\n\nThe mooring fee is 640 euros.")
    assert len(quotes("Where is the berth, and what is the fee?", apart)) == 2


def test_answers_in_several_places_are_all_quoted() -> None:
    times = [hit(f"The pump was repaired on {day} May.", chunk_id=day) for day in (3, 17, 29)]
    assert quotes("When was the pump repaired?", *times) == [time.text for time in times]


def test_of_questions_and_answers_in_one_block_only_one_is_quoted() -> None:
    passage = hit("Q: Who cooks?\nA: Ann does.\nQ: Who washes up?\nA: Bob does.")
    [window] = best_windows(Question.of("Who cooks?"), [passage])
    assert (window.text, window.units[window.first].lead) == ("A: Ann does.", "Q: Who cooks?")


def test_windows_to_compare_are_the_longest_from_each_unit() -> None:
    passage = hit(" ".join(f"Sentence {number} is here." for number in range(MAX_UNITS + 2)))
    windows = windows_to_compare([passage, hit("# Only a heading"), hit("One sentence stands alone here.")])
    places = [(window.first, window.last) for window in windows]
    assert places == [*((first, first + MAX_UNITS - 1) for first in range(3)), (0, 0)]


def test_windows_to_compare_have_few_words_unless_one_unit_has_more() -> None:
    half = "Sentence" + " here" * (NEAREST_WORDS // 2 - 1) + "."
    long = "Sentence" + " there" * NEAREST_WORDS + "."
    windows = windows_to_compare([hit(f"{half} {half} {half} {long}")])
    counts = [word_count(window.text) for window in windows]
    assert counts == [NEAREST_WORDS, NEAREST_WORDS, NEAREST_WORDS + 1]


def test_windows_to_compare_begin_and_end_with_what_says_something() -> None:
    passage = hit("Who cooks?\n\nAnn does.\n\nWho washes up?\n\nBob does.\n\nWho dries?")
    assert [window.text for window in windows_to_compare([passage])] == [
        "Ann does.\n\nWho washes up?\n\nBob does."
    ]


def test_the_nearest_windows_do_not_overlap_and_keep_their_similarity() -> None:
    passages = [
        hit(" ".join(f"Sentence {n} is here." for n in range(2 * MAX_UNITS)), chunk_id=chunk)
        for chunk in (1, 2, 3)
    ]
    windows = windows_to_compare(passages)
    similarities = [1 - place / 1000 for place in range(len(windows))]
    nearest = nearest_windows(windows, similarities)
    places = [(window.hit.chunk_id, window.first) for window in nearest]
    assert places == [(1, 0), (1, MAX_UNITS), (2, 0), (2, MAX_UNITS), (3, 0)]
    assert len(nearest) == MAX_NEAREST
    assert nearest[0].score == 1.0


def test_what_is_much_less_similar_than_the_nearest_is_left_out() -> None:
    windows = windows_to_compare([hit("Tea is hot today."), hit("Dogs bark at night.", chunk_id=2)])
    assert [window.hit.chunk_id for window in nearest_windows(windows, [0.1, 0.5])] == [2]
