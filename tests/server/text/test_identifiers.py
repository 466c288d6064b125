"""The words that identifiers add, in texts and in questions.

Covers `analysis`.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmemory.search.index.lexicon import Lexicon
from ragmemory.text.analysis import hashes, query_terms, stems
from ragmemory.text.identifiers import identifier_words


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("retry_after", "retryafter"),
        ("retryAfter", "retry after"),
        ("RetryAfter", "retry after"),
        ("MAX_RETRIES = 3", "maxretries"),
        ("self.http_client", "httpclient"),
        ("parseHTTPResponse", "parse http response"),
        ("utf8Decode", "utf8 decode"),
        ("get_userId", "getuserid user id"),
        ("xAxis", "axis"),
        ("two plain words", ""),
        ("IDs of H2SO4, __init__, _private, ____, snake-case", ""),
        ("größe_max", ""),
        ("aB" * 40, ""),
        ("\ud800 retryAfter", "retry after"),
    ],
)
def test_an_identifier_adds_its_other_form(text: str, added: str) -> None:
    assert [words.decode() for words in identifier_words(["no_name", text, ""])] == ["noname", added, ""]


def test_the_forms_of_an_identifier_are_looked_up_alike() -> None:
    forms = [sorted(query_terms(text)) for text in ("retry_after", "retryAfter", "RetryAfter")]
    assert forms == [["retri", "retryaft"]] * 3


def test_the_lexicon_counts_what_identifiers_add_but_not_in_the_order_of_the_words() -> None:
    texts = ["the retryAfter header", "plain words", "max_size, max_size"]
    analysed = Lexicon().analyse(texts)

    def named(number: int, *, added: bool) -> list[int]:
        found = analysed.terms if added else analysed.stems
        return sorted(found.names[found.numbers[found.owners == number]].tolist())

    for number, text in enumerate(texts):
        assert named(number, added=False) == sorted(hashes(stems(text)).tolist())
    for number, words in enumerate(["retry after", "", "maxsize maxsize"]):
        expected = sorted(hashes(stems(f"{texts[number]} {words}")).tolist())
        assert named(number, added=True) == expected


@given(st.text(st.sampled_from("aB_1 é.")))
def test_what_is_added_consists_of_plain_words(text: str) -> None:
    added = identifier_words([text])[0].decode()
    assert not added or added.replace(" ", "").isalnum()
    assert added == added.lower()
