"""Answers without a model: what is quoted, how it is shown, and which of the three states it has."""

from __future__ import annotations

import time

from msgspec.structs import replace

from ragchat.offline.answer import (
    EMPTY_MEMORY,
    MOST_FIELDS,
    NEAREST,
    NO_MODEL,
    NOTHING,
    is_grounded,
    nothing,
    quote_windows,
)
from ragchat.offline.evidence import Question
from ragchat.offline.windows import best_windows, windows_to_compare
from ragchat.turn.citations import is_verbatim
from ragchat.turn.passages import judge
from ragchat.types import Answer, Hit
from ragconfig.text_rules import MAX_QUERY_CHARACTERS
from tests.support.turns import hit

TESLA = hit(
    "Nikola Tesla was an inventor. He was born in 1856 in Smiljan.\n\nHe moved to New York in 1884.\n\n"
    "He liked pigeons and billiards.",
    chunk_id=1,
    title="Nikola Tesla",
)
EDISON = hit("Thomas Edison was born in 1847 in Ohio. He employed many people.", chunk_id=2, score=0.6)


def ask(question: str, *hits: Hit, query: str = "", weights: dict[str, float] | None = None) -> Answer:
    asked = Question.of(question, query, weights)
    windows = best_windows(asked, hits)
    grounded = is_grounded(asked, windows)
    return quote_windows(asked, windows, [judge(found, 0.3) for found in hits], grounded=grounded)


def test_the_sentence_that_answers_is_quoted_and_cited() -> None:
    answer = ask("When did Tesla move to New York?", TESLA, EDISON)
    assert answer.text == f"> He moved to New York in 1884. [1]\n\n{NO_MODEL}"
    assert answer.citations[0].uri == TESLA.uri
    assert (answer.grounded, answer.nearest, answer.missing) == (True, [], [])


def test_every_quotation_is_verbatim() -> None:
    by_chunk = {found.chunk_id: found for found in (TESLA, EDISON)}
    answer = ask("Where was the inventor born?", TESLA, EDISON)
    assert answer.citations
    assert all(is_verbatim(cited.quote, by_chunk[cited.chunk_id].text) for cited in answer.citations)


def test_numbers_follow_the_order_of_the_answer_and_mark_the_candidates() -> None:
    answer = ask("Who was born in Ohio?", TESLA, EDISON)
    used = {candidate.hit.chunk_id: candidate.n for candidate in answer.candidates if candidate.used}
    assert {cited.chunk_id: cited.n for cited in answer.citations} == used
    assert answer.citations[0].n == 1


def test_what_does_not_hold_what_is_asked_is_quoted_as_the_nearest() -> None:
    answer = ask("Which school did Tesla attend in Prague?", TESLA)
    assert answer.text.startswith(f"{NEAREST}\n\n> ")
    assert "Not mentioned there: *school*, *attend*, *Prague*" in answer.text
    assert (answer.grounded, answer.citations) == (False, [])
    assert {cited.chunk_id for cited in answer.nearest} == {1}
    assert answer.missing == ["school", "attend", "Prague"]


def test_a_number_of_the_question_must_be_in_the_quotation() -> None:
    room = hit("Room 2 has a projector and twelve chairs.")
    assert ask("How many chairs does room 2 have?", room).grounded
    answer = ask("How many chairs does room 3 have?", room)
    assert not answer.grounded
    assert answer.missing == ["3"]


def test_what_is_missing_are_telling_words_not_how_a_question_asks() -> None:
    passage = hit("The boiler is in the cellar, beside the pump.")
    assert ask("How many litres does the boiler in the cellar hold?", passage).missing == ["litres", "hold"]
    assert ask("How heavy is the boiler in the cellar?", passage).missing == ["heavy"]


def test_the_other_form_of_an_identifier_is_not_missing() -> None:
    code = replace(hit("def retry_after(response):\n    return 60\n"), uri="file:///sync.py")
    answer = ask("What does retryAfter return?", code)
    assert answer.grounded
    assert answer.missing == []


def test_only_the_sentences_of_a_paragraph_are_joined_to_one_line() -> None:
    paragraph = "The tent that we keep in the cellar, behind the door,\nis old, and it leaks."
    [window] = windows_to_compare([hit(f"{paragraph}\n\n- ropes: 4\n- poles: 2")])
    text = quote_windows(Question.of("the tent"), [window], [], grounded=False).text
    assert "the door, is old, and it leaks.  \n> - ropes: 4  \n> - poles: 2 [1]" in text


def test_several_rows_of_one_table_are_shown_below_one_header() -> None:
    table = hit("| tent | seats |\n|---|---|\n| red | 4 |\n| blue | 2 |\n| old red | 3 |")
    windows = best_windows(Question.of("red tent seats?"), [table])
    assert len(windows) == 2
    text = quote_windows(Question.of("red tent seats?"), windows, [], grounded=True).text
    assert "| tent | seats |\n| --- | --- |\n| red | 4 |\n| old red | 3 |\n\n[1]" in text


def test_a_price_without_an_amount_is_not_grounded() -> None:
    assert not ask("How much does the projector cost?", hit("The projector is in room 2.")).grounded
    assert ask("How much does the projector cost?", hit("The projector was 90 euros.")).grounded


def test_the_value_in_a_grounded_quotation_is_not_named_as_missing() -> None:
    boiler = hit("Pressure must stay between 1.2 and 1.8 bar.", heading="Flat > Boiler")
    answer = ask(
        "How much water pressure does the boiler need?", boiler, weights={"pressure": 0.3, "boiler": 0.3}
    )
    assert (answer.grounded, answer.missing) == (True, ["water"])


def test_a_word_that_memory_has_never_seen_weighs_more_than_those_that_it_has() -> None:
    letters = hit("Write headings with capital letters.")
    weights = {"capital": 0.4, "mongolia": 1.0}
    question = "What is the capital of Mongolia?"
    assert ask(question, letters).grounded
    assert not ask(question, letters, query=question, weights=weights).grounded


def test_words_of_earlier_questions_are_no_evidence() -> None:
    boiler = hit("The boiler pressure must stay above 1.2 bar.")
    query = "and the flux capacitor? boiler pressure"
    assert not ask("and the flux capacitor?", boiler, query=query).grounded


def test_only_the_first_part_of_a_very_long_question_is_looked_at() -> None:
    drinks = hit("Green tea takes two minutes.\n\nEspresso is made at 9 bar.")
    question = "green tea? ".ljust(MAX_QUERY_CHARACTERS) + "espresso bar? " * 30_000
    began = time.process_time()
    answer = ask(question, *[drinks] * 8, query=question)
    assert time.process_time() - began < 1
    assert [cited.quote for cited in answer.citations] == ["Green tea takes two minutes."]


def test_what_is_asked_now_weighs_more_than_what_was_asked_before() -> None:
    tea = hit("Green tea is brewed hot, at 70 degrees.", chunk_id=1, score=0.5)
    espresso = hit("Espresso is made at 9 bar.", chunk_id=2)
    query = "And espresso, at which pressure? espresso pressure hot green tea brewed"
    answer = ask("And espresso, at which pressure?", tea, espresso, query=query)
    assert "> Espresso is made at 9 bar. [1]" in answer.text


def test_sentences_that_follow_one_another_are_one_quotation() -> None:
    passage = hit(
        "Green tea is brewed for two minutes. The water of the pot\nmust not boil: 70 degrees are best."
    )
    answer = ask("How is green tea brewed?", passage)
    assert "two minutes. The water of the pot must not boil: 70 degrees are best. [1]" in answer.text
    assert [cited.quote for cited in answer.citations] == [passage.text]


def test_the_same_text_in_two_documents_is_quoted_once() -> None:
    twin = hit(TESLA.text, chunk_id=9, title=TESLA.title)
    answer = ask("When did Tesla move to New York?", TESLA, twin)
    assert answer.text.count("He moved to New York in 1884.") == 1


def test_a_table_row_comes_with_its_header() -> None:
    table = hit("| city | people |\n|---|---|\n| Oslo | 700000 |\n| Rome | 2800000 |")
    answer = ask("How many people live in Oslo?", table).text
    assert "| city | people |\n| --- | --- |\n| Oslo | 700000 |\n\n[1]" in answer
    assert "Rome" not in answer


def test_a_setting_comes_with_its_parents() -> None:
    passage = hit("```\nserver:\n  host: alpha\n  limits:\n    uploads: 20\n```")
    answer = ask("What is the limit for uploads?", passage).text
    assert answer.startswith("```\nserver:\n  limits:\n    uploads: 20\n```\n\n[1]")


def test_a_single_item_comes_with_the_line_that_introduces_it_and_without_its_bullet() -> None:
    passage = hit("For the cake we need:\n\n- three eggs from Anna\n- a tin of cherries\n- flour")
    answer = ask("Who brings eggs for the cake?", passage).text
    assert answer.startswith("> For the cake we need:  \n> three eggs from Anna [1]")


def test_an_answer_comes_with_its_question() -> None:
    passage = hit("## May I bring my dog?\n\nYes, on a lead.\n\n## Is there parking?\n\nBehind the mill.")
    answer = ask("Can I bring a dog?", passage)
    assert answer.text.startswith("> May I bring my dog?  \n> Yes, on a lead. [1]")
    assert [cited.quote for cited in answer.citations] == ["Yes, on a lead."]


def test_the_lines_of_a_chat_stay_lines() -> None:
    passage = hit("10:02 Ann: who has the key?\n10:03 Bob: Carla has the key of the gym")
    answer = ask("Who has the key of the gym?", passage).text
    assert "> 10:02 Ann: who has the key?  \n> 10:03 Bob: Carla has the key of the gym [1]" in answer


def test_chinese_questions_find_their_sentence() -> None:
    water = hit("上海是中国最大的城市。北京是中国的首都。广州在南方。")
    assert "北京是中国的首都。" in ask("中国的首都是哪里？", water).text


def test_nothing_is_quoted_where_memory_has_nothing_on_the_topic() -> None:
    answer = nothing([judge(hit("Tea is hot.", score=0.1), 0.3)])
    assert (answer.text, answer.grounded, answer.citations, answer.nearest) == (NOTHING, False, [], [])
    assert [candidate.used for candidate in answer.candidates] == [False]
    assert nothing([], empty=True).text == EMPTY_MEMORY


TRANSCRIPT = """```
❯ /inject notes
2 added (4 chunks).

❯ How much water pressure does the boiler need?
▌ Pressure must stay between 1.2 and 1.8 bar. [1]
```
"""


def test_a_transcript_that_holds_the_question_is_quoted_with_its_answer() -> None:
    answer = ask("How much water pressure does the boiler need?", hit(TRANSCRIPT))
    assert "Pressure must stay between 1.2 and 1.8 bar." in answer.text


def test_a_short_block_of_code_answers_how_to() -> None:
    readme = hit("You need Python 3.11.\n\n```\npip install ragchat   # then: ragchat\n```\n\nIt is small.")
    assert ask("how do I install it?", readme).text.startswith("```\npip install ragchat")


def test_a_question_in_a_document_is_no_answer() -> None:
    asking = hit("How much pressure does the boiler need? Ask the plumber.", chunk_id=1)
    telling = hit("The boiler needs 1.2 bar.", chunk_id=2, score=0.8)
    answer = ask("How much pressure does the boiler need?", asking, telling)
    assert answer.text.startswith("> The boiler needs 1.2 bar. [1]")


def test_a_record_of_a_csv_file_is_shown_with_the_names_of_its_columns() -> None:
    boats = replace(hit("boat;sign\nSkua;MHK4\nPetrel;MXQ7\n"), uri="file:///boats.csv")
    answer = ask("What is the sign of Petrel?", boats)
    assert answer.text.startswith("> boat: Petrel · sign: MXQ7 [1]")
    [citation] = answer.citations
    assert (citation.quote, citation.quote_start_line) == ("Petrel;MXQ7", 3)


def test_of_a_wide_record_the_fields_that_are_asked_for_are_shown() -> None:
    columns = ",".join(["sensor", *(f"channel c{number}" for number in range(40))])
    values = ",".join(["probe7", *(str(number * 3) for number in range(40))])
    wide = replace(hit(f"{columns}\n{values}\n"), uri="file:///wide.csv")
    answer = ask("What does channel c31 of probe7 show?", wide)
    quotation = answer.text.splitlines()[0]
    assert quotation.startswith("> sensor: probe7 · ")
    assert "channel c31: 93" in quotation
    assert quotation.count(" · ") == MOST_FIELDS


def test_the_place_of_a_quotation_is_its_own_not_that_of_equal_words_above_it() -> None:
    passage = hit("Prices\n\n- red 4\n- blue 5\n\n## Blue 5\n\nThe article blue 5 costs 3 euros.\n")
    [citation] = ask("What does the article blue 5 cost?", passage).citations
    assert (citation.quote_start_line, citation.quote_end_line) == (8, 8)


def test_a_value_of_another_thing_is_no_answer_to_what_is_asked() -> None:
    passage = hit(
        "The lock was mended by Ida in May. A keeper looks after the hives. He bought oars for £40."
    )
    assert ask("What is the keeper of the hives called?", passage).missing == ["called"]
    assert ask("Who mended the lock?", passage).missing == []
    assert (
        ask("How tall is the lighthouse?", hit("The lighthouse is old. The tower is 31 metres tall.")).missing
        == []
    )
    assert ask("What does the lock cost?", passage).missing == ["cost"]


def test_a_sentence_that_goes_on_with_a_pronoun_is_about_the_same() -> None:
    passage = hit("The kiln stands in the shed. It was bought for £400.")
    assert ask("What did the kiln cost?", passage).missing == []


def test_a_turn_is_judged_with_the_turns_around_it() -> None:
    question, weights = "When did Ann move to Oslo?", {"ann": 0.2, "move": 0.8, "oslo": 0.9}
    turn = hit("Ann: In 2019, in the spring, with two suitcases.", score=0.5)
    assert not ask(question, turn, query=question, weights=weights).grounded
    around = replace(turn, surroundings="Bob: When did you move to Oslo?")
    answer = ask(question, around, query=question, weights=weights)
    assert answer.grounded
    assert [cited.quote for cited in answer.citations] == [turn.text]
    assert answer.missing == []
