"""The embedding of queries.

Covers `byte_pairs`.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tokenizers import Tokenizer

from ragmemory.embedders.byte_pairs import MAX_WORD, BytePairEncoder
from ragmemory.embedders.local import (
    MATRIX,
    TOKENIZER,
    WEIGHTS,
    LocalEmbedder,
    mapped_matrix,
    wordllama_files,
)

with wordllama_files() as FOLDER:
    ENCODER = BytePairEncoder.load(FOLDER / TOKENIZER)

TEXTS = [
    "The quick brown fox, 3.14² — and so on: naïve façade Straße",
    "internationalization </s> <s> <unk> <0x41> x-ray don't C++ snake_case camelCase __init__",
    "Ελληνικά Привет мир日本語テキスト 한국어 العربية हिन्दी ภาษาไทย",
    "🦙 emoji👍🏽 a\u0301 \u00ad\u200b \ufeff \0 ²³ ½",
]


def test_words_have_the_tokens_that_the_tokenizer_gives_them() -> None:
    tokenizer = Tokenizer.from_file(str(FOLDER / TOKENIZER))
    tokenizer.encode_special_tokens = True  # "</s>" in a text is a text
    words = [word for text in TEXTS for word in text.split()]
    words += Path(json.__file__).read_text(encoding="utf-8").split()
    for word in words:
        assert (
            ENCODER.encode(word[: MAX_WORD - 1])
            == tokenizer.encode(word[: MAX_WORD - 1], add_special_tokens=False).ids
        )


def test_a_word_without_end_is_read_in_linear_time_and_not_remembered() -> None:
    before = ENCODER._cached.cache_info().currsize
    assert len(ENCODER.encode("x" * 200_000)) > 10_000
    assert ENCODER._cached.cache_info().currsize == before


def test_the_mapped_weights_are_those_of_the_file() -> None:
    from safetensors import safe_open

    with safe_open(FOLDER / WEIGHTS, "numpy") as file:
        assert np.array_equal(mapped_matrix(FOLDER / WEIGHTS, MATRIX), file.get_tensor(MATRIX))


@pytest.mark.parametrize("content", [b"", b"\xff" * 20, b"\x02\0\0\0\0\0\0\0{}"])
def test_a_damaged_weights_file_raises_an_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(content)
    with pytest.raises((ValueError, KeyError, msgspec.DecodeError)):
        mapped_matrix(tmp_path / "weights", MATRIX)


async def test_questions_are_asked_without_the_model_for_documents() -> None:
    embedder = LocalEmbedder()
    assert await embedder.embed_query("a question", lambda words: [1.0] * len(words)) is not None
    assert embedder._document_model is None
