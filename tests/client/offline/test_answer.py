"""Answers without a model."""

from __future__ import annotations

import time

from ragchat.offline.answer import EMPTY_MEMORY, NO_MODEL, NOTHING, compose
from ragchat.turn.citations import is_verbatim
from ragchat.turn.passages import judge
from ragchat.types import Candidate, Hit
from ragconfig.text_rules import MAX_QUERY_CHARACTERS
from tests.support.turns import hit

TESLA = hit(
    "Nikola Tesla was an inventor. He was born in 1856 in Smiljan. He moved to New York in 1884. "
    "He liked pigeons and billiards.",
    chunk_id=1,
    title="Nikola Tesla",
)
EDISON = hit("Thomas Edison was born in 1847 in Ohio. He employed many people.", chunk_id=2, score=0.6)


def judged(*hits: Hit) -> list[Candidate]:
    return [judge(found, 0.3) for found in hits]


def test_the_sentence_that_answers_is_quoted_and_cited() -> None:
    quoted = compose("When did Tesla move to New York?", judged(TESLA, EDISON))
    assert "He moved to New York in 1884. [1]" in quoted.text
    assert "pigeons" not in quoted.text
    assert quoted.text.endswith(NO_MODEL)
    assert quoted.citations[0].uri == TESLA.uri


def test_every_quotation_is_verbatim() -> None:
    by_chunk = {found.chunk_id: found for found in (TESLA, EDISON)}
    quoted = compose("Where was the inventor born?", judged(TESLA, EDISON))
    assert quoted.citations
    assert all(is_verbatim(cited.quote, by_chunk[cited.chunk_id].text) for cited in quoted.citations)


def test_numbers_follow_the_order_of_the_answer_and_mark_the_candidates() -> None:
    quoted = compose("Who was born in Ohio?", judged(TESLA, EDISON))
    used = {candidate.hit.chunk_id: candidate.n for candidate in quoted.candidates if candidate.used}
    assert {cited.chunk_id: cited.n for cited in quoted.citations} == used
    assert quoted.citations[0].n == 1


def test_sentences_of_one_passage_stay_in_the_order_of_the_text() -> None:
    quoted = compose("Tesla born in Smiljan, moved to New York", judged(TESLA))
    assert quoted.text.index("Smiljan") < quoted.text.index("New York")


def test_only_the_first_part_of_a_very_long_question_is_looked_at() -> None:
    drinks = hit("Green tea takes two minutes. Cats sleep. Dogs bark. Espresso is made at 9 bar.")
    question = "green tea? ".ljust(MAX_QUERY_CHARACTERS) + "espresso bar? " * 30_000
    began = time.process_time()
    quoted = compose(question, judged(*[drinks] * 8), query=question)
    assert time.process_time() - began < 1
    assert [cited.quote for cited in quoted.citations] == ["Green tea takes two minutes."]


def test_what_is_asked_now_weighs_more_than_what_was_asked_before() -> None:
    tea = hit("Green tea is brewed hot, at 70 degrees.", chunk_id=1, score=0.5)
    espresso = hit("Espresso is made at 9 bar.", chunk_id=2)
    query = "And espresso, at which pressure? espresso pressure hot green tea brewed"
    quoted = compose("And espresso, at which pressure?", judged(tea, espresso), query=query)
    assert quoted.text.startswith("> Espresso is made at 9 bar. [1]")


def test_sentences_that_follow_one_another_are_one_quotation() -> None:
    passage = hit("Green tea is brewed at 70 degrees.\nGreen tea takes two minutes. Cats sleep. Dogs bark.")
    quoted = compose("How is green tea brewed?", judged(passage))
    assert "> Green tea is brewed at 70 degrees. Green tea takes two minutes. [1]" in quoted.text
    assert [cited.quote for cited in quoted.citations] == [
        "Green tea is brewed at 70 degrees.\nGreen tea takes two minutes."
    ]


def test_sentences_that_stand_apart_are_two_quotations() -> None:
    passage = hit("Green tea is hot. Cats sleep. Dogs bark. Green tea is brewed at 70 degrees.")
    quoted = compose("How is green tea brewed?", judged(passage))
    assert quoted.text.count("[1]") == len(quoted.citations) == 2


def test_the_same_text_in_two_documents_is_quoted_once() -> None:
    twin = Hit(**{name: getattr(TESLA, name) for name in Hit.__struct_fields__} | {"chunk_id": 9})
    quoted = compose("When did Tesla move to New York?", judged(TESLA, twin))
    assert quoted.text.count("He moved to New York in 1884.") == 1


def test_a_table_row_comes_with_its_header() -> None:
    table = hit("| city | people |\n|---|---|\n| Oslo | 700000 |\n| Rome | 2800000 |")
    answer = compose("How many people live in Oslo?", judged(table)).text
    assert "| city | people |\n| --- | --- |\n| Oslo | 700000 |\n\n[1]" in answer


def test_long_code_is_shortened_on_the_screen() -> None:
    code = "```python\ndef parse_date(text):\n" + "    pass\n" * 30 + "```"
    answer = compose("parse_date function", judged(hit(code))).text
    assert answer.startswith("```python\ndef parse_date(text):")
    assert len(answer.splitlines()) < 20


def test_an_item_of_a_list_is_quoted_without_its_bullet() -> None:
    answer = compose("What does the printer cost?", judged(hit("- The printer costs 90 euros\n- Tea"))).text
    assert "> The printer costs 90 euros [1]" in answer


def test_chinese_questions_find_their_sentence() -> None:
    water = hit("上海是中国最大的城市。北京是中国的首都。广州在南方。")
    assert "北京是中国的首都。 [1]" in compose("中国的首都是哪里？", judged(water)).text


def test_an_answer_says_that_nothing_is_relevant() -> None:
    quoted = compose("ferrets?", judged(hit("Tea is hot.", score=0.1)))
    assert (quoted.text, quoted.citations) == (NOTHING, [])
    assert [candidate.used for candidate in quoted.candidates] == [False]


def test_an_empty_memory_has_another_answer_than_one_without_relevant_passages() -> None:
    assert compose("?", [], empty=True).text == EMPTY_MEMORY
    assert compose("?", []).text == NOTHING


def test_a_passage_without_any_sentence_quotes_nothing() -> None:
    assert compose("heading", judged(hit("# Heading\n\n---\n"))).citations == []


TRANSCRIPT = """Nothing is installed; no model is running.

```
Your memory is empty. Load files or folders with /inject PATH.

❯ /inject notes
2 added (4 chunks).

❯ How much water pressure does the boiler need?
▌ Pressure must stay between 1.2 and 1.8 bar. [1]

No language model is configured: these are the best sentences of your memory,
word for word.

[1] notes/flat.md:5–7  Flat > Boiler  0.88

❯ and how do I refill it?
▌ Pressure must stay between 1.2 and 1.8 bar. Refill it with the blue valve
▌ under the sink. [1]

❯ What is the capital of Mongolia?
Nothing in memory is relevant to this question.
```
"""


def test_a_transcript_that_holds_the_question_does_not_hide_the_sentence_that_answers_it() -> None:
    transcript = hit(TRANSCRIPT, score=0.98)
    note = hit(
        "Pressure must stay between 1.2 and 1.8 bar. Refill it with the blue valve.",
        score=0.85,
        chunk_id=2,
        title="Flat",
        heading="Flat > Boiler",
    )
    question = "How much water pressure does the boiler need?"
    quoted = compose(question, judged(transcript, note))
    assert quoted.text.startswith("> Pressure must stay between 1.2 and 1.8 bar. [1]")
    assert "Mongolia" not in quoted.text


def test_the_words_of_a_long_block_count_where_they_stand_together() -> None:
    far = "```\nbrew\n" + "".join(f"step{i} part{i}\n" for i in range(12)) + "install\n```"
    near = "```\nbrew install ragchat\n```"
    quoted = compose("brew install", judged(hit(far, chunk_id=1), hit(near, chunk_id=2)))
    assert quoted.text.startswith("```\nbrew install ragchat\n```")
    assert "step1" not in quoted.text


def test_a_short_block_of_code_answers_how_to() -> None:
    readme = hit("You need Python 3.11.\n\n```\npip install ragchat   # then: ragchat\n```\n\nIt is small.")
    assert compose("how do I install it?", judged(readme)).text.startswith("```\npip install ragchat")


def test_a_question_in_a_document_is_no_answer() -> None:
    asking = hit("How much pressure does the boiler need? Ask the plumber.", chunk_id=1)
    telling = hit("The boiler needs 1.2 bar.", chunk_id=2, score=0.8)
    quoted = compose("How much pressure does the boiler need?", judged(asking, telling))
    assert quoted.text.startswith("> The boiler needs 1.2 bar. [1]")


def test_a_further_sentence_from_elsewhere_holds_a_word_of_the_question() -> None:
    boiler = hit("Pressure must stay above 1.2 bar.", chunk_id=1)
    dogs = hit("There are 3 of them.", chunk_id=2, title="Dogs")
    question = "How much water pressure does the old boiler need?"
    assert "3 of them" not in compose(question, judged(boiler, dogs)).text


def test_a_block_of_code_does_not_speak_for_the_sentence_behind_it() -> None:
    block = (
        '```toml\nask = "How much water pressure does the old boiler need?"\n```\n\nEach step does 1 thing.'
    )
    note = hit("Pressure must stay above 1.2 bar.", chunk_id=2, score=0.8)
    question = "How much water pressure does the old boiler need?"
    quoted = compose(question, judged(hit(block), note))
    assert quoted.text.startswith("> Pressure must stay above 1.2 bar. [1]")
    assert "Each step" not in quoted.text
