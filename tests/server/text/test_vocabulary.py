from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmemory.text.vocabulary import FACTORS, LONG, SPACED, HashTable, Vocabulary, mixed, range_hashes

LETTERS, MARKS = 1, 2
# Letters belong together and marks do, digits stand alone.
BONDS = bytes(
    LETTERS if chr(i).isalpha() else MARKS if chr(i) in "-+" else 0 if i < 128 else LETTERS | MARKS
    for i in range(256)
)
PARTS = re.compile(r"(?: ?)(?:[a-z]+|[-+]+|[0-9])")
TEXTS = st.lists(st.text("ab1- ", max_size=30), max_size=8)


@given(TEXTS)
def test_words_are_those_that_an_expression_finds_and_equal_ones_have_one_number(texts: list[str]) -> None:
    vocabulary = Vocabulary(BONDS, with_space=True)
    found = vocabulary.look_up([text.encode() for text in texts])
    expected = [PARTS.findall(" " + re.sub(" +", " ", text)) for text in texts]
    names = [word.decode() for word in found.new]
    assert [names[number] for number in found.numbers] == [word for words in expected for word in words]
    assert np.bincount(found.owners, minlength=len(texts)).tolist() == [len(words) for words in expected]
    assert len(set(names)) == len(names) == len(vocabulary)
    again = vocabulary.look_up([text.encode() for text in texts])
    assert again.new == []
    assert again.numbers.tolist() == found.numbers.tolist()


def test_texts_of_several_blocks_are_numbered_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"word {number % 7} and {number}".encode() for number in range(50)]
    whole = Vocabulary(SPACED).look_up(texts)
    monkeypatch.setattr("ragmemory.text.vocabulary.BLOCK", 40)
    parts = Vocabulary(SPACED).look_up(texts)
    assert whole.owners.tolist() == parts.owners.tolist()
    names = ([found.new[number] for number in found.numbers] for found in (whole, parts))
    assert next(names) == next(names)


def test_words_of_any_length_differ_in_their_last_byte_and_in_their_length() -> None:
    words = [b"x" * size + end for size in range(3 * LONG) for end in (b"", b"y", b"z", b"\0")]
    distinct = set(words)
    vocabulary = Vocabulary(SPACED)
    found = vocabulary.look_up([b" ".join(words)])
    assert len(vocabulary) == len(distinct - {b""})
    assert found.new == list(dict.fromkeys(found.new))


def test_two_words_that_one_process_takes_for_one_are_two_in_another(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other, end = (np.frombuffer(part, np.uint64) for part in (b"believes", b"disagree", b" in that"))
    secret = np.uint64(12345)
    monkeypatch.setattr("ragmemory.text.vocabulary.SECRET", secret)
    size = np.uint64(16) * FACTORS[1:]
    forged = end ^ mixed(one ^ size ^ secret) ^ mixed(other ^ size ^ secret)
    words = one.tobytes() + end.tobytes() + other.tobytes() + forged.tobytes()
    starts = np.array([0, 16])
    assert len(set(range_hashes(words, starts, starts + 16).tolist())) == 1
    monkeypatch.setattr("ragmemory.text.vocabulary.SECRET", secret + np.uint64(1))
    assert len(set(range_hashes(words, starts, starts + 16).tolist())) == 2


def test_numbers_stay_when_the_table_grows_and_when_keys_meet() -> None:
    numbering = HashTable()
    # Their high bits, which say where a search begins, are all the same.
    keys = np.arange(1, 20_001, dtype=np.uint64)
    first, examples = numbering.numbers(keys[:300])
    assert sorted(first.tolist()) == list(range(300))
    assert keys[examples][first].tolist() == keys[:300].tolist()
    spread = keys * np.uint64(0x9E3779B97F4A7C15)
    numbering.numbers(spread)
    assert len(numbering) == 20_300 - len(np.intersect1d(keys[:300], spread))
    assert numbering.numbers(keys[:300])[0].tolist() == first.tolist()
