"""Citations of an answer, checked against the passages."""

from __future__ import annotations

import time
import unicodedata

import pytest
from msgspec import convert, to_builtins

from ragchat.grounding.citations import check, is_verbatim
from ragcommon.contract.search import Hit
from tests.support.turns import hit

FOX = hit("The quick brown fox\njumps over the lazy dog. It said “good evening” – twice.", chunk_id=1)
WATER = hit("水是生命之源，没有水就没有生命。 And **bold claims** need strong evidence.", chunk_id=2)
PASSAGES = {1: FOX, 2: WATER}


def checked(answer: str) -> list[tuple[int, str, bool | None]]:
    return [(found.n, found.quote, found.verified) for found in check(answer, PASSAGES).citations]


def test_a_mark_without_a_quotation_cites_the_passage() -> None:
    assert checked("Foxes jump [1].") == [(1, "", None)]
    [citation] = check("Foxes jump [1].", PASSAGES).citations
    assert (citation.uri, citation.chunk_id, citation.start_line, citation.end_line) == (FOX.uri, 1, 1, 2)


def test_a_verbatim_quotation_is_verified_across_line_breaks() -> None:
    assert checked('It says "The quick brown fox jumps over" [1].') == [
        (1, "The quick brown fox jumps over", True)
    ]


def test_a_quotation_with_a_changed_word_is_not_verified() -> None:
    assert checked('It says "The quick brown cat jumps over" [1].') == [
        (1, "The quick brown cat jumps over", False)
    ]


def test_a_quotation_of_another_passage_is_not_verified() -> None:
    assert checked('"The quick brown fox" [2].') == [(2, "The quick brown fox", False)]


@pytest.mark.parametrize(
    ("answer", "cited"),
    [
        ("Both [1][2].", [1, 2]),
        ("Both [1, 2].", [1, 2]),
        ("Both [1-2].", [1, 2]),
        ("两者【1】都对。", [1]),
        ("As a note [^2].", [2]),
        ("Both are right【2†L3-L5】, he says [1†source].", [2, 1]),
        ("A list:\n- one [2]\n- two [1]", [2, 1]),
        ("A [link](http://x) and [1](http://x).", []),
        ("In code `x[1]` and\n```\ny[2]\n```\nno more.", []),
        ("No mark at all.", []),
    ],
)
def test_marks_are_read_in_every_usual_form(answer: str, cited: list[int]) -> None:
    assert [n for n, _, _ in checked(answer)] == cited


def test_a_number_that_names_no_passage_is_reported() -> None:
    result = check("True [7], and true [1].", PASSAGES)
    assert result.unknown == [7]
    assert [citation.n for citation in result.citations] == [1]


def test_a_wrong_quotation_before_a_number_that_names_no_passage_is_not_blamed_on_another_one() -> None:
    assert checked('Foxes jump [1], "made up words here" [9].') == [(1, "", None)]
    assert checked('In [1] "The quick brown fox" [9].') == [(1, "The quick brown fox", True)]


def test_a_mark_before_its_quotation_is_taken_where_none_follows() -> None:
    assert checked('In [1] stands "The quick brown fox".') == [(1, "The quick brown fox", True)]


def test_with_marks_on_both_sides_the_passage_that_has_the_words_is_meant() -> None:
    answer = 'In [1] it says "the quick brown fox", while [2] says "bold claims need strong evidence".'
    assert checked(answer) == [
        (1, "the quick brown fox", True),
        (2, "bold claims need strong evidence", True),
    ]


def test_a_block_quotation_is_checked_with_its_mark_inside_or_below() -> None:
    assert checked("> The quick brown fox jumps [1]") == [(1, "The quick brown fox jumps", True)]
    assert checked("> The quick brown fox hops.\n\n[1]") == [(1, "The quick brown fox hops.", False)]


def test_a_mark_of_another_paragraph_has_no_say() -> None:
    assert checked('"made up words here"\n\nFoxes jump [1].') == [(1, "", None)]


def test_one_or_two_quoted_words_are_a_term_not_a_quotation() -> None:
    assert checked('The "lazy cat" sleeps [1].') == [(1, "", None)]


def test_several_quotations_of_one_passage_are_several_citations() -> None:
    assert checked('"The quick brown fox" and "over the lazy dog" [1].') == [
        (1, "The quick brown fox", True),
        (1, "over the lazy dog", True),
    ]


def test_chinese_quotations_are_checked() -> None:
    assert checked("“没有水就没有生命” [2]。") == [(2, "没有水就没有生命", True)]
    assert checked("「没有火就没有生命」 [2]。") == [(2, "没有火就没有生命", False)]


@pytest.mark.parametrize(
    ("quote", "verbatim"),
    [
        ("the quick brown fox", True),  # begins a sentence there
        ("The  quick\nbrown fox.", True),
        ('said "good evening" - twice', True),  # other quotation marks, another dash
        ("quick … lazy dog", True),
        ("lazy … quick", False),
        ("bold claims", False),
        ("", True),
        ("…", True),
    ],
)
def test_what_may_differ_in_a_verbatim_quotation(quote: str, verbatim: bool) -> None:
    assert is_verbatim(quote, FOX.text) is verbatim


def test_accents_may_be_composed_or_not() -> None:
    decomposed = unicodedata.normalize("NFD", "Der Schlüssel für die Küche")
    assert is_verbatim("Schlüssel für die Küche", decomposed)
    assert is_verbatim(decomposed, "Der Schlüssel für die Küche")


def test_emphasis_in_the_passage_is_no_part_of_its_words() -> None:
    assert is_verbatim("bold claims need", WATER.text)


def test_a_passage_is_read_once_for_all_its_quotations() -> None:
    reads: list[str] = []

    class Counted(Hit, frozen=True):
        @property
        def full_text(self) -> str:
            reads.append(self.text)
            return self.text

    fox = convert(to_builtins(FOX), Counted)
    assert len(check('"The quick brown fox" [1]. ' * 40, {1: fox}).citations) == 40
    assert reads == [FOX.text]


def test_a_quotation_that_is_longer_than_the_passage_is_not_searched_word_by_word() -> None:
    long = "".join(f"> word{number} and another one\n" for number in range(20_000))
    began = time.process_time()
    assert checked(f"{long}\n[1]")[0][2] is False
    assert time.process_time() - began < 2
