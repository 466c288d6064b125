"""The local embedder.

Covers `local`, `document_model`, `tokenizer`, `unit` and `word_vectors`.
"""

from __future__ import annotations

import errno
import importlib.util
import math
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tokenizers import Tokenizer

from ragmemory.embedders.local import (
    DIMENSIONS,
    TOKENIZER,
    LocalEmbedder,
    load_query_model,
    wordllama_files,
)
from ragmemory.errors import EmbedderUnavailable
from ragmemory.text.vocabulary import MAX_WORDS
from ragmemory.types.writes import Embedding

LOCAL = LocalEmbedder()
WORDS = LOCAL.query_model().words


@pytest.mark.parametrize(("number", "advice"), [(errno.ENOMEM, "Close"), (errno.EIO, "Install it again")])
def test_a_file_that_cannot_be_read_for_want_of_memory_is_not_to_be_installed_again(
    number: int, advice: str
) -> None:
    with pytest.raises(EmbedderUnavailable) as error, wordllama_files():
        raise OSError(number, os.strerror(number))
    assert error.value.hint.startswith(advice)


def alike(words: list[str]) -> list[float]:
    return [1.0] * len(words)


def vector(embedding: Embedding) -> NDArray[np.float32]:
    return np.frombuffer(embedding, "<f2").astype(np.float32)


async def embed(*texts: str, titles: Sequence[str] | None = None) -> list[NDArray[np.float32]]:
    embeddings = await LOCAL.embed_documents(texts, titles or [""] * len(texts))
    return [vector(embedding) for embedding in embeddings]


async def ask(text: str) -> NDArray[np.float32]:
    asked = await LOCAL.embed_query(text, alike)
    assert asked is not None
    return asked


async def test_vectors_are_of_unit_length_and_of_the_stated_dimensions() -> None:
    for found in await embed("The cat sat on the mat.", "Die Katze saß auf der Matte.", "猫坐在垫子上。"):
        assert found.shape == (DIMENSIONS,)
        assert np.linalg.norm(found) == pytest.approx(1, abs=1e-2)


@pytest.mark.parametrize("nothing", ["", " \n\t "])
async def test_what_is_empty_is_embedded_as_zeros_and_asked_as_nothing(nothing: str) -> None:
    (found,) = await embed(nothing)
    assert not found.any()
    assert await LOCAL.embed_query(nothing, alike) is None


async def test_a_text_is_embedded_the_same_alone_and_among_others() -> None:
    texts = [f"text number {n} about {'cats' if n % 2 else 'ships and harbours'}" for n in range(600)]
    together = await embed(*texts)
    for n in (0, 255, 256, 599):
        assert np.array_equal((await embed(texts[n]))[0], together[n])


async def test_related_texts_are_nearer_than_others() -> None:
    ship, soup = await embed("The ship left the harbour.", "Boil the soup with salt.")
    question = await ask("vessel in the port")
    assert question @ ship > question @ soup + 0.1


async def test_a_title_draws_its_text_near() -> None:
    plain, titled = await embed("It was built in 1889.", "It was built in 1889.", titles=["", "Eiffel Tower"])
    question = await ask("eiffel tower")
    assert question @ titled > question @ plain + 0.2


async def test_a_text_matches_single_words_however_long_it_is() -> None:
    long = "The gate was painted, the fence was mended, and everyone had {} before the bus came."
    texts = [long.format("coffee"), long.format("tea"), long.format("quarrels"), ""]
    (same, _), (near, _), (far, bus), empty = await LOCAL.word_matches(["Coffee", "bus"], texts)
    assert [same, bus] == pytest.approx([1, 1], abs=1e-3)
    assert same > near > far > 0
    assert not empty.any()
    assert (await LOCAL.word_matches([], texts)).shape == (4, 0)


async def test_vectors_of_words_are_kept_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragmemory.embedders.word_vectors.CACHED_WORDS", 3)
    words = load_query_model().words
    before = words.matches(["tea"], ["Green tea, größer", "coffee"])
    assert (before == words.matches(["tea"], ["Green tea, größer", "coffee"])).all()
    assert len(words._vectors) == 0  # four words were too many
    words.matches(["tea"], ["Green_tea", "tea"])
    assert len(words._vectors) == 2
    assert (before == words.matches(["tea"], ["tea größer GREEN", "coffee"])).all()


async def test_a_word_that_the_model_does_not_know_begins_with_a_piece_that_it_knows() -> None:
    (same,), (other,) = await LOCAL.word_matches(["brewing"], ["They brew beer.", "They paint doors."])
    assert 1 > same > 0.3 > other


@given(st.text(max_size=40), st.lists(st.text(max_size=80), max_size=4))
def test_any_texts_can_be_compared(word: str, texts: list[str]) -> None:
    matches = WORDS.matches([word, "tea"], texts)
    assert matches.shape == (len(texts), 2)
    assert (np.abs(matches) <= 1.001).all()


async def test_words_that_tell_little_weigh_little() -> None:
    def weigh(words: list[str]) -> list[float]:
        return [0.0 if word == "ship" else 1.0 for word in words]

    asked = await LOCAL.embed_query("ship soup", weigh)
    assert asked is not None
    assert asked @ await ask("soup") == pytest.approx(1)


@pytest.mark.parametrize("text", ["Πού είναι η γάτα;", "बिल्ली कहाँ है", "أين القطة", "แมวอยู่ที่ไหน"])
async def test_scripts_that_the_tokenizer_spells_are_left_to_the_words(text: str) -> None:
    assert await LOCAL.embed_query(text, alike) is None


def plain_tokenizer() -> Tokenizer:
    spec = importlib.util.find_spec("wordllama")
    assert spec is not None
    assert spec.origin is not None
    tokenizer: Tokenizer = Tokenizer.from_file(str(Path(spec.origin).parent / TOKENIZER))
    tokenizer.encode_special_tokens = True
    return tokenizer


async def test_tokens_are_counted_as_the_tokenizer_does() -> None:
    texts = ["", "The cat sat.", "x" * 1000]
    tokenizer = plain_tokenizer()
    counted = LOCAL.count_tokens(texts)
    exact = [len(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts]
    assert counted == exact


def test_cached_words_have_the_tokens_of_the_tokenizer() -> None:
    tokenizer = plain_tokenizer()
    for text in ["</s> <s>", "a\tb\u00a0c\u2028d", "x-ray, 3.14² und so", "猫坐在垫子上。", "\0 \ufeff"]:
        exact = tokenizer.encode(" ".join(text.split()), add_special_tokens=False).ids
        for _ in range(2):
            assert LOCAL.document_model().tokenizer.encode([text]).ids.tolist() == exact


def test_words_are_forgotten_before_they_fill_the_memory() -> None:
    embedder = LocalEmbedder()
    before = embedder.count_tokens(["seldom"])
    tokenizer = embedder.document_model().tokenizer
    for start in range(0, MAX_WORDS + 1, 50_000):
        tokenizer.counts([" ".join(f"word{n}" for n in range(start, start + 50_000))])
    assert tokenizer.counts(["something new"]) == [2]
    assert len(tokenizer._vocabulary) < MAX_WORDS
    assert embedder.count_tokens(["seldom"]) == before


def test_one_load_is_shared() -> None:
    assert LOCAL.document_model() is LOCAL.document_model()


def test_nothing_is_ever_nan() -> None:
    assert not math.isnan(float(LOCAL.document_model().embed(["", "\ufeff"], ["", ""]).sum()))
